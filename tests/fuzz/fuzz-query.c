/*
 * What a stranger may ask: "series?layer=storage&metric=write_bytes", on a small real store. Every
 * answer is one of those that the API has, and its body is what it says it is.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectord/metrics.h"
#include "collectord/route.h"
#include "lib/clock.h"
#include "tests/bench/world.h"

#define BEGIN (INT64_C(1796027000) * SECOND)
#define ROWS 60u
#define INPUT_MAX 1024u
#define PARAMETERS_MAX 32u
#define TIME_BUDGET_US 500000u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct store_reader *reader;
static char folder[] = "/tmp/strata-fuzz-XXXXXX";

static void remove_folder(void)
{
        char command[64];

        store_reader_close(reader);
        snprintf(command, sizeof(command), "rm -r %s", folder);
        if (system(command) != 0)
                perror(folder);
}

/* A trace of /proc/diskstats that counts up. */
static FILE *make_trace(void)
{
        FILE *file = tmpfile();

        assert(file);
        for (unsigned i = 0; i < 100; i++) {
                fprintf(file, "# %u000\n253 0 vda", i);
                for (unsigned k = 0; k < WORLD_METRICS; k++)
                        fprintf(file, " %u", k == 8 ? i % 3 : i * (k + 1));
                fputs("\n", file);
        }
        rewind(file);
        return file;
}

static void fill(struct world *world, struct store *store)
{
        assert(store_begin(store) == 0);
        assert(world_put_facts(world, store, BEGIN) == 0);
        for (uint32_t host = 0; host < world->n_hosts; host++)
                assert(world_put(world, store, host, BEGIN, SECOND, ROWS) == 0);
        assert(store_commit(store) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        struct world world;
        struct store *store;
        char *message;
        FILE *trace = make_trace();

        (void)argc, (void)argv;
        assert(mkdtemp(folder));
        assert(world_open(&world, trace, 2, 2) == 0);
        fclose(trace);
        assert(store_open(folder, &store, &message) == 0);
        fill(&world, store);
        assert(store_reader_open(folder, &reader) == 0);
        store_close(store);
        world_done(&world);
        atexit(remove_folder);
        return 0;
}

/* "a=b&c=d": cuts @text into pieces. */
static size_t split(char *text, struct api_parameter *ret)
{
        size_t n = 0;

        for (char *pair; n < PARAMETERS_MAX && (pair = strsep(&text, "&"));) {
                char *value = strchr(pair, '=');

                if (value)
                        *value++ = '\0';
                ret[n++] = (struct api_parameter){pair, value ? value : ""};
        }
        return n;
}

static void check_answer(const struct api_response *response)
{
        json_t *json;

        assert(response->status == 200 || response->status == 400 || response->status == 404 ||
                response->status == 503);
        if (strstr(response->content_type, "json")) {
                json = json_loadb(response->body, response->body_size, 0, NULL);
                assert(json);
                json_decref(json);
        } else {
                /* CSV and metrics are lines. */
                assert(response->status == 200);
                assert(response->body_size == 0 || response->body[response->body_size - 1] == '\n');
        }
}

static void ask(const char *path, struct api_parameter *parameters, size_t n)
{
        static struct metrics metrics;
        const struct api_request request = {.method = "GET",
                .path = path,
                .parameters = parameters,
                .n_parameters = n,
                .role = API_ROLE_READER,
                .now_us = BEGIN + ROWS * SECOND,
                .deadline_us = clock_monotonic_us() + TIME_BUDGET_US,
                .metrics = &metrics};
        struct api_response response = {0};
        const struct route *route;
        const char *allow;
        int r;

        if (route_find("GET", path, &route, &allow) < 0 || route->action != ROUTE_READ)
                return;
        r = route_check(route, &request, &response);
        assert(r >= 0);
        if (r == 0) {
                store_reader_set_deadline(reader, request.deadline_us);
                assert(store_reader_begin(reader) == 0);
                r = route->read(reader, &request, &response);
                store_reader_end(reader);
                if (r < 0)
                        assert(api_problem_errno(&request, &response, r) == 0);
        }
        check_answer(&response);
        api_response_done(&response);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
        struct api_parameter parameters[PARAMETERS_MAX];
        char path[INPUT_MAX + 16], text[INPUT_MAX + 1], *query;

        if (size > INPUT_MAX)
                return 0;
        memcpy(text, bytes, size);
        text[size] = '\0';
        query = strchr(text, '?');
        if (query)
                *query++ = '\0';
        snprintf(path, sizeof(path), "/api/v1/%s", text);
        ask(path, parameters, query ? split(query, parameters) : 0);
        return 0;
}
