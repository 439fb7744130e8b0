#pragma once
/*
 * The dashboard's files, read into memory when the program starts: a request is looked up by its
 * whole name among them, so that no path can lead out of the folder and no disk is waited for.
 */

#include <stddef.h>

#include "lib/cleanup.h"

struct web_file {
        const char *path; /* "/", "/index.html", "/lib/uplot.js" */
        const char *content_type;
        const char *etag; /* with its quotes */
        const char *content;
        size_t size;
};

struct web_files;

/* A folder that is not there gives no files. *ret_message as everywhere. -E2BIG: too much in it. */
int web_files_open(const char *folder, struct web_files **ret, char **ret_message);
struct web_files *web_files_free(struct web_files *files);
DEFINE_CLEANUP(web_files, struct web_files *, web_files_free)

/* NULL when there is none. */
const struct web_file *web_files_find(const struct web_files *files, const char *path);
