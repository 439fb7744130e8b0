/*
 * ratio(time, cluster, key, upper, lower, ratio, amplification, expected, excess, state): the curve
 * that GET /ratio answers, with its parameters as arguments. "Now" is the store's newest sample, so
 * that a copy of yesterday's store can be asked, too.
 */
#include "collectord/store-sql.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/api.h"
#include "collectord/metrics.h"

SQLITE_EXTENSION_INIT3

#define SCHEMA                                                                                     \
        "CREATE TABLE ratio(time REAL, cluster TEXT, key TEXT, upper REAL, lower REAL, "           \
        "ratio REAL, amplification REAL, expected REAL, excess REAL, state TEXT, "                 \
        "folder TEXT HIDDEN, step TEXT HIDDEN, \"by\" TEXT HIDDEN, direction TEXT HIDDEN, "        \
        "measure TEXT HIDDEN, upper_layer TEXT HIDDEN, lower_layer TEXT HIDDEN)"

enum column {
        COLUMN_TIME,
        COLUMN_CLUSTER,
        COLUMN_KEY,
        COLUMN_UPPER,
        COLUMN_STATE = 9,
        COLUMN_FOLDER,
        COLUMN_STEP,
        COLUMN_BY,
        COLUMN_DIRECTION,
        COLUMN_MEASURE,
        COLUMN_UPPER_LAYER,
        COLUMN_LOWER_LAYER,
        N_COLUMNS,
};

/* By the number of the column, as the answer of the API and its parameters call them. */
static const char *const members[N_COLUMNS] = {"t", "cluster", "key", "upper", "lower", "ratio",
        "amplification", "expected", "excess", "state", NULL, "step", "by", "direction", "measure",
        "upper", "lower"};

enum wish {
        WISH_FOLDER,
        WISH_STEP,
        WISH_BY,
        WISH_DIRECTION,
        WISH_MEASURE,
        WISH_UPPER,
        WISH_LOWER,
        WISH_CLUSTER,
        WISH_GE,
        WISH_LT,
        WISH_LE,
        N_WISHES
};

static const struct store_sql_wish wishes[N_WISHES] = {
        [WISH_FOLDER] = {COLUMN_FOLDER, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_STEP] = {COLUMN_STEP, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_BY] = {COLUMN_BY, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_DIRECTION] = {COLUMN_DIRECTION, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_MEASURE] = {COLUMN_MEASURE, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_UPPER] = {COLUMN_UPPER_LAYER, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_LOWER] = {COLUMN_LOWER_LAYER, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_CLUSTER] = {COLUMN_CLUSTER, SQLITE_INDEX_CONSTRAINT_EQ, false},
        [WISH_GE] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_GE, false},
        [WISH_LT] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_LT, false},
        [WISH_LE] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_LE, false},
};

struct cursor {
        sqlite3_vtab_cursor base;   /* first, for store_sql_open_cursor */
        char *arguments[N_COLUMNS]; /* of hidden columns, and the cluster */
        char *from, *to;
        json_t *answer;
        json_t *curves;
        size_t curve, point;
};

static void reset(struct cursor *cursor)
{
        sqlite3_vtab *table = cursor->base.pVtab;

        for (size_t i = 0; i < N_COLUMNS; i++)
                free(cursor->arguments[i]);
        free(cursor->from);
        free(cursor->to);
        json_decref(cursor->answer);
        *cursor = (struct cursor){.base.pVtab = table};
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
        reset((struct cursor *)base);
        free(base);
        return SQLITE_OK;
}

/* ---- the question ---- */

static int take_arguments(struct cursor *cursor, int number, int argc, sqlite3_value **argv)
{
        for (int wish = 0, i = 0; wish < N_WISHES && i < argc; wish++) {
                const char *text;
                char **to;

                if (!(number & 1 << wish))
                        continue;
                to = wish == WISH_GE                      ? &cursor->from
                     : wish == WISH_LT || wish == WISH_LE ? &cursor->to
                                                          : &cursor->arguments[wishes[wish].column];
                text = (const char *)sqlite3_value_text(argv[i++]);
                free(*to);
                *to = strdup(text ? text : "");
                if (!*to)
                        return -ENOMEM;
        }
        return 0;
}

static size_t add(struct api_parameter *parameters, size_t n, const char *name, const char *value)
{
        if (!value)
                return n;
        parameters[n] = (struct api_parameter){name, value};
        return n + 1;
}

static int ask(struct cursor *cursor, const struct store_sql *sql, struct api_response *response)
{
        static struct metrics metrics;
        struct api_parameter parameters[N_COLUMNS + 2];
        struct api_request request = {.method = "GET",
                .path = "/api/v1/ratio",
                .parameters = parameters,
                .role = API_ROLE_LOCAL,
                .now_us = sql->last_us + 1,
                .metrics = &metrics};
        size_t n = 0;

        for (size_t i = COLUMN_STEP; i < N_COLUMNS; i++)
                n = add(parameters, n, members[i], cursor->arguments[i]);
        n = add(parameters, n, "cluster", cursor->arguments[COLUMN_CLUSTER]);
        n = add(parameters, n, "from", cursor->from);
        request.n_parameters = add(parameters, n, "to", cursor->to);
        return api_ratio(sql->reader, &request, response);
}

static int take_answer(struct cursor *cursor, const struct api_response *response)
{
        sqlite3_vtab *table = cursor->base.pVtab;

        cursor->answer = json_loadb(response->body, response->body_size, 0, NULL);
        if (!cursor->answer)
                return SQLITE_NOMEM;
        if (response->status != 200) {
                sqlite3_free(table->zErrMsg);
                table->zErrMsg = sqlite3_mprintf(
                        "%s", json_string_value(json_object_get(cursor->answer, "detail")));
                return SQLITE_ERROR;
        }
        cursor->curves = json_object_get(cursor->answer, "series");
        return SQLITE_OK;
}

/* Curves of no point are none. */
static void skip_empty(struct cursor *cursor)
{
        while (cursor->curve < json_array_size(cursor->curves) &&
                cursor->point >= json_array_size(json_object_get(
                                         json_array_get(cursor->curves, cursor->curve), "t"))) {
                cursor->curve++;
                cursor->point = 0;
        }
}

static int filter(
        sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
        struct cursor *cursor = (struct cursor *)base;
        struct api_response response = {0};
        struct store_sql sql;
        int r;

        (void)text;
        reset(cursor);
        r = take_arguments(cursor, number, argc, argv);
        if (r == 0)
                r = store_sql_open(&sql, cursor->arguments[COLUMN_FOLDER]);
        if (r < 0)
                return store_sql_fail(base->pVtab, cursor->arguments[COLUMN_FOLDER], r);
        r = ask(cursor, &sql, &response);
        store_sql_close(&sql);
        r = r < 0 ? store_sql_fail(base->pVtab, cursor->arguments[COLUMN_FOLDER], r)
                  : take_answer(cursor, &response);
        api_response_done(&response);
        if (r == SQLITE_OK)
                skip_empty(cursor);
        return r;
}

static int next(sqlite3_vtab_cursor *base)
{
        struct cursor *cursor = (struct cursor *)base;

        cursor->point++;
        skip_empty(cursor);
        return SQLITE_OK;
}

static int is_end(sqlite3_vtab_cursor *base)
{
        const struct cursor *cursor = (const struct cursor *)base;

        return cursor->curve >= json_array_size(cursor->curves);
}

/* ---- a row ---- */

static void result_json(sqlite3_context *context, const json_t *value)
{
        if (json_is_number(value))
                sqlite3_result_double(context, json_number_value(value));
        else if (json_is_string(value))
                sqlite3_result_text(context, json_string_value(value), -1, SQLITE_TRANSIENT);
        else
                sqlite3_result_null(context);
}

static int result_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
        const struct cursor *cursor = (const struct cursor *)base;
        const json_t *curve = json_array_get(cursor->curves, cursor->curve);

        if (number == COLUMN_CLUSTER)
                result_json(context, json_object_get(cursor->answer, "cluster"));
        else if (number == COLUMN_KEY)
                result_json(context, json_object_get(curve, "key"));
        else if (number <= COLUMN_STATE)
                result_json(context,
                        json_array_get(json_object_get(curve, members[number]), cursor->point));
        else if (cursor->arguments[number])
                sqlite3_result_text(context, cursor->arguments[number], -1, SQLITE_TRANSIENT);
        return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
        const struct cursor *cursor = (const struct cursor *)base;

        *ret = (sqlite3_int64)cursor->curve << 32 | (sqlite3_int64)cursor->point;
        return SQLITE_OK;
}

const struct store_sql_table store_sql_ratio = {
        .module =
                {
                        .xConnect = store_sql_connect,
                        .xBestIndex = store_sql_best_index,
                        .xDisconnect = store_sql_disconnect,
                        .xOpen = store_sql_open_cursor,
                        .xClose = close_cursor,
                        .xFilter = filter,
                        .xNext = next,
                        .xEof = is_end,
                        .xColumn = result_column,
                        .xRowid = row_id,
                },
        .schema = SCHEMA,
        .wishes = wishes,
        .n_wishes = N_WISHES,
        .cursor_size = sizeof(struct cursor),
};
