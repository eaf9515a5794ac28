/* lookup.c - see lookup.h */
#include "store/lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/url.h"

enum { STACK = 1024 * 1024 }; /* modules of the system's resolver may need more than our threads do */

struct leat_lookup {
	atomic_int owners;
	atomic_bool done;
	char host[LEAT_HOST], port[8];
	unsigned count;
	leat_address_text text[LEAT_ADDRESSES];
};

void
leat_lookup_drop(struct leat_lookup *lookup)
{
	if (lookup && atomic_fetch_sub(&lookup->owners, 1) == 1)
		free(lookup);
}

/* Addresses that need a scope are of this link only; libcurl is left alone with them. */
static void
keep(struct leat_lookup *lookup, const struct addrinfo *info)
{
	if (lookup->count < LEAT_ADDRESSES &&
	    getnameinfo(info->ai_addr, info->ai_addrlen, lookup->text[lookup->count], LEAT_ADDRESS_TEXT, NULL, 0,
	                NI_NUMERICHOST) == 0 &&
	    !strchr(lookup->text[lookup->count], '%'))
		lookup->count++;
}

static void *
resolve(void *arg)
{
	struct leat_lookup *lookup = arg;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *list = NULL;

	if (getaddrinfo(lookup->host, lookup->port, &hints, &list) == 0) {
		for (const struct addrinfo *info = list; info; info = info->ai_next)
			keep(lookup, info);
		freeaddrinfo(list);
	}
	atomic_store(&lookup->done, true);
	leat_lookup_drop(lookup);
	return NULL;
}

struct leat_lookup *
leat_lookup_start(const char *host, unsigned port)
{
	struct leat_lookup *lookup = calloc(1, sizeof(*lookup));
	pthread_attr_t attr;
	pthread_t thread;
	int failed;

	if (!lookup)
		return NULL;
	atomic_init(&lookup->owners, 2);
	snprintf(lookup->host, sizeof(lookup->host), "%s", host);
	snprintf(lookup->port, sizeof(lookup->port), "%u", port);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	failed = pthread_create(&thread, &attr, resolve, lookup);
	pthread_attr_destroy(&attr);
	if (!failed)
		return lookup;
	free(lookup);
	return NULL;
}

bool
leat_lookup_done(struct leat_lookup *lookup, leat_address_text text[LEAT_ADDRESSES], unsigned *count)
{
	if (!atomic_load(&lookup->done))
		return false;
	memcpy(text, lookup->text, sizeof(lookup->text));
	*count = lookup->count;
	return true;
}

/* ---- a list of hosts ---- */

/* The next "HOST:PORT:" of a list; returns what follows. NULL: there is none, or it makes no sense. */
static const char *
take_host(const char *at, char host[LEAT_HOST], unsigned *port)
{
	int used = 0;

	return sscanf(at, "%255[^]: ,[]:%5u:%n", host, port, &used) == 2 && used && *port > 0 && *port < 65536
	               ? at + used
	               : NULL;
}

/* The next address, with or without brackets. */
static const char *
take_address(const char *at, leat_address_text text)
{
	size_t open = *at == '[', len = strcspn(at + open, open ? "]" : ", ");
	unsigned char bytes[16];

	if (len == 0 || len >= LEAT_ADDRESS_TEXT || (open && at[open + len] != ']'))
		return NULL;
	memcpy(text, at + open, len);
	text[len] = '\0';
	if (inet_pton(AF_INET, text, bytes) != 1 && inet_pton(AF_INET6, text, bytes) != 1)
		return NULL;
	return at + len + 2 * open;
}

unsigned
leat_lookup_in(const char *list, const char *host, unsigned port, leat_address_text text[LEAT_ADDRESSES])
{
	char its_host[LEAT_HOST];
	unsigned its_port, count = 0;
	const char *at = list;

	while ((at = take_host(at + strspn(at, " "), its_host, &its_port)) != NULL) {
		bool wanted = its_port == port && strcasecmp(its_host, host) == 0;
		leat_address_text address;

		while ((at = take_address(at, address)) != NULL) {
			if (wanted && count < LEAT_ADDRESSES)
				memcpy(text[count++], address, sizeof(address));
			if (*at != ',')
				break;
			at++;
		}
		if (!at || wanted)
			break;
	}
	return count;
}

const char *
leat_lookup_check(const char *list)
{
	const char *at = list + strspn(list, " ");

	while (*at) {
		char host[LEAT_HOST];
		unsigned port;
		leat_address_text address;

		at = take_host(at, host, &port);
		if (!at)
			return "it is not HOST:PORT:ADDRESS,ADDRESS";
		while ((at = take_address(at, address)) != NULL && *at == ',')
			at++;
		if (!at || !strchr(" ", *at))
			return "an address in it is not numeric";
		at += strspn(at, " ");
	}
	return NULL;
}
