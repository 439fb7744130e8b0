/* What the cluster is good for, as text, JSON, or a page to keep. */

#include "cli/command.h"

#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/report-page.h"
#include "cli/table.h"

static void add_use(struct table *table, const json_t *use)
{
        const json_t *clients = json_object_get(use, "filesystem"),
                     *ability = json_object_get(use, "ability");
        const char *grade = json_get_text(use, "grade");
        enum colour colour = strcmp(grade, "poor") == 0   ? COLOUR_BAD
                             : strcmp(grade, "fair") == 0 ? COLOUR_NOTICE
                             : strcmp(grade, "good") == 0 ? COLOUR_GOOD
                                                          : COLOUR_NONE;
        char name[REPORT_USE_MAX], text[FORMAT_MAX];

        table_add(table, COLOUR_NONE, "%s", report_use_name(use, name));
        table_add(table, COLOUR_NONE, "%s",
                format_byte_rate(json_get_number(clients, "bytes_per_second"), text));
        table_add(table, COLOUR_NONE, "%s",
                format_count(json_get_number(clients, "ops_per_second"), text));
        table_add(table, COLOUR_NONE, "%s",
                format_factor(json_get_number(use, "amplification"), text));
        table_add(table, COLOUR_NONE, "%s", format_factor(json_get_number(use, "expected"), text));
        table_add(table, COLOUR_NONE, "%s", format_factor(json_get_number(use, "excess"), text));
        table_add(table, COLOUR_NONE, "%s",
                format_byte_rate(json_get_number(ability, "bytes_per_second"), text));
        table_add(table, COLOUR_DIM, "%s", json_get_text(ability, "state"));
        table_add(table, COLOUR_NONE, "%s", format_percent(json_get_number(use, "share"), text));
        table_add(table, colour, "%s", *grade ? grade : "-");
}

static int print_uses(struct output *output, const json_t *uses)
{
        static const struct table_column columns[] = {{"USE"}, {"CLIENTS", true}, {"IOPS", true},
                {"AMPLIFICATION", true}, {"EXPECTED", true}, {"EXCESS", true},
                {"DEVICES CAN", true}, {""}, {"SHARE", true}, {"GRADE"}, {NULL}};
        CLEANUP(table) struct table *table = NULL;
        const json_t *use;
        size_t i;
        int r = table_new(columns, &table);

        if (r < 0)
                return r;
        json_array_foreach (uses, i, use)
                if (json_get_number(use, "windows") > 0)
                        add_use(table, use);
        fputc('\n', output->stream);
        r = table_print(table, output);
        if (r < 0)
                return r;
        fputc('\n', output->stream);
        json_array_foreach (uses, i, use)
                fprintf(output->stream, "%s%s%s\n",
                        output_colour(output,
                                json_get_number(use, "windows") > 0 ? COLOUR_NONE : COLOUR_DIM),
                        json_get_text(use, "sentence"), output_plain(output));
        return 0;
}

static int print_report(struct invocation *invocation, const json_t *report, const char *name)
{
        struct output *output = invocation->output;
        const json_t *summary = json_object_get(report, "summary"), *sentence;
        double from = json_get_number(report, "from"), to = json_get_number(report, "to");
        char from_text[FORMAT_MAX], to_text[FORMAT_MAX], age[FORMAT_MAX];
        size_t i, findings = json_array_size(json_object_get(report, "findings"));

        fprintf(output->stream, "%s%s%s, %s to %s (%s)\n", output_colour(output, COLOUR_BOLD), name,
                output_plain(output), format_time(from, from_text), format_time(to, to_text),
                format_age(to - from, age));
        json_array_foreach (summary, i, sentence)
                fprintf(output->stream, "%s\n", json_text_at(summary, i));
        if (print_uses(output, json_object_get(report, "uses")) < 0)
                return -1;
        if (findings > 0)
                fprintf(output->stream, "\n%zu finding%s in this time: strata findings --ended\n",
                        findings, findings == 1 ? "" : "s");
        return 0;
}

static int report_run(struct invocation *invocation)
{
        CLEANUP(json) json_t *clusters = NULL;
        CLEANUP(json) json_t *json = NULL;
        const char *fsid, *name;

        if (command_option(invocation, OPTION_JSON) && command_option(invocation, OPTION_HTML))
                return command_fail(
                        invocation, STATUS_USAGE, "--json and --html exclude each other");
        if (command_cluster(invocation, &clusters, &fsid, &name) < 0)
                return command_failed(invocation);
        const struct client_parameter parameters[] = {
                {"cluster", fsid},
                {"from", command_option(invocation, OPTION_FROM)},
                {"to", command_option(invocation, OPTION_TO)},
                {"step", command_option(invocation, OPTION_STEP)},
                {NULL},
        };
        if (command_get(invocation, "/report", parameters, &json) < 0)
                return command_failed(invocation);
        if (command_option(invocation, OPTION_JSON))
                return command_print_json(invocation, json);
        if (command_option(invocation, OPTION_HTML)) {
                const struct report_page page = {json, name, (double)invocation->now_us / 1e6};

                report_page_write(&page, invocation->output->stream);
                return STATUS_OK;
        }
        return print_report(invocation, json, name) < 0 ? command_failed(invocation) : STATUS_OK;
}

static const enum option_id options[] = {
        OPTION_CLUSTER, OPTION_FROM, OPTION_TO, OPTION_STEP, OPTION_HTML, OPTION_MAX_};

const struct command command_report = {
        .name = "report",
        .summary = "what the cluster is good for, by mode and request size",
        .text = "Shows, from the curves of the last day or a range, how much of what the devices "
                "can\n"
                "do reaches the clients, for reads and writes of 4k to 4m, sequential and random\n"
                "where that can be told, and what is expected; and so what the cluster is good "
                "for.\n"
                "What is not known says why. --html prints a page that needs nothing else, to "
                "keep.",
        .options = options,
        .run = report_run,
};
