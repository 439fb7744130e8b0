/*
 * The sources by id. The ceph source is here as a proxy: its open loads the module, so that
 * librados is mapped where it is used and nowhere else. The module is never unloaded again, for
 * librados leaves destructors of threads behind.
 */
#include "agentd/source.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/log.h"

#define CEPH_DEADLINE_US 12000000u /* two calls that time out after 5 s each, and a little */

struct source {
        const struct source_class *class;
        struct source *inner; /* of the module */
};

static int module_load(const struct source_options *options, const struct source_report *report,
        const struct source_class **ret)
{
        const char *folder = options->module_folder ? options->module_folder : "";
        const struct source_class *class = NULL;
        char path[PATH_MAX];
        void *module;
        int n;

        n = snprintf(path, sizeof(path), "%s/strata-source-ceph.so", folder);
        if (n >= (int)sizeof(path))
                return -ENAMETOOLONG;
        module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (module)
                class = dlsym(module, SOURCE_CEPH_SYMBOL);
        if (class) {
                *ret = class;
                return 0;
        }
        source_report(report, LOG_LEVEL_ERROR, "the ceph source cannot be loaded: %s", dlerror());
        return -ENOTSUP;
}

static void proxy_close(struct source *source)
{
        if (!source)
                return;
        if (source->inner)
                source->class->close(source->inner);
        free(source);
}
DEFINE_CLEANUP(source, struct source *, proxy_close)

static int proxy_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        CLEANUP(source) struct source *source = calloc(1, sizeof(*source));
        int r;

        if (!source)
                return -ENOMEM;
        r = module_load(options, report, &source->class);
        if (r < 0)
                return r;
        r = source->class->open(options, report, &source->inner);
        if (r < 0)
                return r;
        *ret = STEAL(source);
        return 0;
}

static int proxy_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        return source->class->collect(source->inner, deadline_us, ret);
}

static int proxy_add_facts(struct source *source, struct facts *facts)
{
        return source->class->add_facts(source->inner, facts);
}

static const struct source_class source_ceph_proxy = {
        .id = SOURCE_CEPH,
        .may_wait = true,
        .deadline_us = CEPH_DEADLINE_US,
        .open = proxy_open,
        .collect = proxy_collect,
        .add_facts = proxy_add_facts,
        .close = proxy_close,
};

int source_class_get(enum source_id id, const struct source_class **ret)
{
        static const struct source_class *const classes[SOURCE_MAX_] = {
                [SOURCE_DISKSTATS] = &source_diskstats,
                [SOURCE_OSD] = &source_osd,
                [SOURCE_CEPH] = &source_ceph_proxy,
                [SOURCE_HOST] = &source_host,
                [SOURCE_AGENT] = &source_agent,
                [SOURCE_OSD_HISTOGRAM] = &source_osd_histogram,
        };

        if ((size_t)id >= SOURCE_MAX_ || !classes[id])
                return -ENOENT;
        *ret = classes[id];
        return 0;
}
