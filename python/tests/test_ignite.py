"""Ignite's engines with leat.torch.DataLoader: epochs, lengths, and resuming."""
import numpy as np
import pytest

import leat

torch = pytest.importorskip("torch")
pytest.importorskip("ignite")
from ignite.engine import DeterministicEngine, Engine, Events  # noqa: E402
from ignite.metrics import Accuracy  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def loader(shuffled=True, samples=45):
    numbers = leat.array(x=np.arange(samples), y=np.arange(samples) % 3)
    return leat.torch.DataLoader((numbers.shuffle() if shuffled else numbers).batch(10), fields=("x", "y"), seed=1)


def engine(kind=Engine):
    seen = []
    return kind(lambda engine, batch: seen.append(batch[0].tolist())), seen


@pytest.fixture(scope="module")
def straight():
    whole = loader()
    return [[x.tolist() for x, _ in whole] for _ in range(3)]


def test_an_engine_runs_whole_epochs_each_in_its_own_order(straight):
    trainer, seen = engine()
    state = trainer.run(loader(), max_epochs=2)
    assert seen == straight[0] + straight[1] and state.epoch_length == 5


def test_set_epoch_in_a_handler_gives_that_epoch(straight):
    trainer, seen = engine()
    data = loader()
    trainer.add_event_handler(Events.GET_BATCH_STARTED(once=1), lambda: None)
    trainer.add_event_handler(Events.STARTED, lambda: data.sampler.set_epoch(2))
    trainer.run(data, max_epochs=1)
    assert seen == straight[2]


def test_a_deterministic_engine_resumes_in_the_middle_of_an_epoch(straight):
    """It builds another loader, over the batches that are left."""
    trainer, seen = engine(DeterministicEngine)
    states = []
    trainer.add_event_handler(Events.ITERATION_COMPLETED(once=8), lambda: states.append(trainer.state_dict()))
    trainer.run(loader(), max_epochs=2)
    assert [sorted(sum(seen[i:i + 5], [])) for i in (0, 5)] == [list(range(45))] * 2
    resumed, rest = engine(DeterministicEngine)
    resumed.load_state_dict(states[0])
    data = loader()
    data.set_epoch(1)
    resumed.run(data)
    assert rest == straight[1][3:]


def test_accuracy_counts_every_sample_once():
    evaluator = Engine(lambda engine, batch: (torch.nn.functional.one_hot(batch[0] % 3, 3).float(), batch[1]))
    accuracy = Accuracy()
    accuracy.attach(evaluator, "accuracy")
    state = evaluator.run(loader(shuffled=False))
    assert state.metrics["accuracy"] == 1 and accuracy._num_examples == 45
