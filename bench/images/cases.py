"""What all contenders do: the cases, and Leat's spec of each."""
import dataclasses

MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]
ANGLE = 40  # degrees, counter-clockwise
BRIGHTNESS = 0.1
CONTRAST = (0.9, 1.1)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    title: str
    ops: str  # Leat's
    batch: int
    shape: tuple = ()  # of an image, () when sizes differ


PHOTOS = Case("photos", "(a) photos: decode, random_resized_crop, flip, normalize, chw",
              "decode(mode=torch) | random_resized_crop(224, 224, mode=torch, antialias=true) | random_flip | scale(1/255)"
              f" | normalize(mean={MEAN}, std={STD}) | layout(chw)", 64, (3, 224, 224))
FAST_OPS = PHOTOS.ops.replace("mode=torch", "mode=torch, fast=true", 1)  # of decode
CELL_OPS = ("decode | resize(100, 100) | scale(1/255) | random_flip"
            f" | rotate({ANGLE}deg) | random_brightness({BRIGHTNESS}) | random_contrast{CONTRAST}")
CELLS_JPEG = Case("cells-jpeg", "(b) cells, JPEG: decode, resize, flip, rotate, brightness, contrast",
                  CELL_OPS, 32, (100, 100, 3))
CELLS_PNG = Case("cells-png", "(b) cells, PNG: the same", CELL_OPS, 32, (100, 100, 3))
CASES = {case.name: case for case in (PHOTOS, CELLS_JPEG, CELLS_PNG)}
