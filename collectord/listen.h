#pragma once
/* What the server needs before it can start: its socket and its certificate. */

#include "collectord/collector-config.h"

#define LISTEN_ADDRESS_MAX 64u

/* A listening socket; @ret_address[LISTEN_ADDRESS_MAX] gets its address, with the port that the
 * kernel chose for 0. *ret_message: why there is none, freed by the caller. */
int listen_open(const char *listen_on, int *ret_fd, char *ret_address, char **ret_message);
/* Both PEM texts, freed by the caller; NULL when none is configured. */
int listen_read_certificate(const struct collector_config *config, char **ret_certificate,
        char **ret_key, char **ret_message);
