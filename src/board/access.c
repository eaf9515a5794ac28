/* access.c - who may ask: methods, names of this machine, other sites, the token
 *
 * A web page of somebody else runs in the same browser as the board, and can send requests to loopback addresses.
 * It cannot read answers of another origin; a name that it rebinds to 127.0.0.1 is refused by its Host, or has no
 * cookie. */
#include <openssl/crypto.h>
#include <string.h>

#include "board/inside.h"

static bool
is_token(const struct leat_board *board, const char *given)
{
	uint8_t digest[LEAT_SHA256_BYTES];

	return given && strlen(given) < LEAT_BOARD_WORD && leat_sha256(given, strlen(given), digest) == 0 &&
	       CRYPTO_memcmp(digest, board->token, sizeof(digest)) == 0;
}

static bool
has_token(const struct leat_board *board, struct MHD_Connection *connection)
{
	__typeof__(MHD_lookup_connection_value) *lookup = board->mhd->lookup_connection_value;

	return is_token(board, lookup(connection, MHD_COOKIE_KIND, board->cookie)) ||
	       is_token(board, lookup(connection, MHD_GET_ARGUMENT_KIND, "token"));
}

/* Links from other sites to the page are fine; their pictures, frames and scripts are not. */
static bool
is_foreign(const struct leat_board *board, struct MHD_Connection *connection, const struct leat_board_request *request)
{
	const char *site = board->mhd->lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

	return request->what != LEAT_BOARD_PAGE && site && strcmp(site, "same-origin") != 0 &&
	       strcmp(site, "none") != 0;
}

const char *
leat_board_refuse(const struct leat_board *board, struct MHD_Connection *connection, const char *method,
                  const struct leat_board_request *request, unsigned *code)
{
	const char *host = board->mhd->lookup_connection_value(connection, MHD_HEADER_KIND, "Host");

	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		*code = MHD_HTTP_METHOD_NOT_ALLOWED;
		return "the board only shows: use GET or HEAD";
	}
	*code = MHD_HTTP_FORBIDDEN;
	if (!board->needs_token && !leat_board_host_is_local(host))
		return "the board answers only to localhost and loopback addresses; for others, start it with "
		       "--private";
	if (is_foreign(board, connection, request))
		return "the board does not answer to pages of other sites";
	*code = MHD_HTTP_UNAUTHORIZED;
	if (board->needs_token && !has_token(board, connection))
		return "the board needs its token: open the URL that 'leat board' printed";
	return NULL;
}
