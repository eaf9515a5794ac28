/* page.h - the board's page as bytes, made by the build from src/board/page and what src/xray/page shares
 * (scripts/page) */
#ifndef LEAT_BOARD_PAGE_H
#define LEAT_BOARD_PAGE_H

#include <stddef.h>

/* The data goes between the halves. */
extern const unsigned char leat_board_page_begin[], leat_board_page_end[];
extern const unsigned char leat_board_page_policy[]; /* NUL-terminated */
extern const size_t leat_board_page_begin_size, leat_board_page_end_size, leat_board_page_policy_size;

#endif
