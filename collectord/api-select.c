#include "collectord/api-select.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int api_select_parse(
        const struct api_request *request, struct api_response *response, struct api_selection *ret)
{
        int r;

        *ret = (struct api_selection){
                .paged = api_parameter(request, "limit") || api_parameter(request, "cursor")};
        r = api_parse_number(request, response, "top", 0, 1, 1000, &ret->top);
        if (r != 0)
                return r;
        r = api_parse_page(request, response, &ret->page);
        if (r != 0)
                return r;
        if (ret->top == 0 || !ret->paged)
                return 0;
        r = api_problem(request, response, 400, "top and limit cannot be asked for together");
        return r < 0 ? r : 1;
}

char *api_select_key(const char *host, const char *key)
{
        char *text;

        return asprintf(&text, "%s%s%s", host ? host : "", host ? "/" : "", key) < 0 ? NULL : text;
}

static int compare_means(const void *a, const void *b)
{
        const struct api_candidate *x = a, *y = b;
        double p = isnan(x->mean) ? -INFINITY : x->mean, q = isnan(y->mean) ? -INFINITY : y->mean;

        if (p != q)
                return p < q ? 1 : -1;
        return strcmp(x->key, y->key);
}

static int compare_keys(const void *a, const void *b)
{
        const struct api_candidate *x = a, *y = b;

        return strcmp(x->key, y->key);
}

const struct api_candidate *api_select(const struct api_selection *selection,
        struct api_candidate *candidates, size_t n, size_t *ret_count, const char **ret_cursor)
{
        const struct api_page *page = &selection->page;
        size_t first = 0;

        *ret_cursor = NULL;
        *ret_count = n;
        if (selection->top > 0) {
                qsort(candidates, n, sizeof(*candidates), compare_means);
                if (n > selection->top)
                        *ret_count = selection->top;
        } else if (selection->paged) {
                qsort(candidates, n, sizeof(*candidates), compare_keys);
                while (first < n && strcmp(candidates[first].key, page->after) <= 0)
                        first++;
                *ret_count = n - first;
                if (*ret_count > page->limit) {
                        *ret_count = page->limit;
                        *ret_cursor = candidates[first + page->limit - 1].key;
                }
        }
        return candidates + first;
}

void api_select_done(struct api_candidate *candidates, size_t n)
{
        for (size_t i = 0; candidates && i < n; i++)
                free(candidates[i].key);
        free(candidates);
}
