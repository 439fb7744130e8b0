#pragma once
/* Text inside HTML and SVG. Every word that did not stand in this program's source goes through
 * html_text: names of clusters, pools, hosts and devices are whatever somebody chose. */

#include <stdio.h>

/* For element content and for attribute values in double or single quotes. */
void html_text(FILE *stream, const char *text);
