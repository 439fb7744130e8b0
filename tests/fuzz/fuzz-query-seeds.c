/* Writes seeds for fuzz-query into a folder: one query a file, of every kind. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/cleanup.h"

static const char *const queries[] = {
        "clusters",
        "agents?limit=1&cursor=b0570000-0000-0000-0000-000000000000",
        "osds?cluster=0b0e8d54-0000-4000-8000-000000000001&limit=2",
        "devices?cluster=none",
        "pools?limit=1000",
        "plans",
        "plans/*",
        "series?layer=storage&metric=write_bytes,read_await&by=device&top=2&step=10s",
        "series?layer=storage&metric=utilisation,queue&entity=node1/sda&from=-1m&to=now",
        "series?layer=storage&metric=write_size&by=host&limit=1&cursor=node0",
        "series?layer=filesystem&metric=write_ops&by=pool",
        "series?layer=storage&metric=write_bytes&by=device&extremes=yes&step=1m",
        "ratio?upper=osd&lower=storage&by=device&step=10s",
        "export?what=ladder&by=osd",
        "series?layer=host&metric=cpu_user&host=node0",
        "ratio?upper=osd&lower=storage&by=class&direction=read&measure=ops&top=1",
        "ratio?by=pool&from=1796027000&to=2026-11-30T08:24:20Z&step=500ms",
        "ladder?from=-1m&direction=write",
        "export?what=series&format=csv&layer=storage&metric=discard_ops&by=osd",
        "export?what=devices&limit=1",
        "export?what=ladder&from=-30s",
        "export?what=ratio&upper=osd&by=host",
};

int main(int argc, char **argv)
{
        if (argc != 2)
                return EXIT_FAILURE;
        for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
                char path[4096];

                snprintf(path, sizeof(path), "%s/query-%zu", argv[1], i);
                CLEANUP(file) FILE *file = fopen(path, "we");

                if (!file || fputs(queries[i], file) < 0)
                        return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
