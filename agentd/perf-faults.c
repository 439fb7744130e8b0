#include "agentd/perf-faults.h"

#include <ctype.h>
#include <stdlib.h>

#include "lib/metric.h"

#define PART_MAX 999u /* of a version's second and third number */

/* clang-format off */
static const struct perf_fault faults[] = {
        {METRIC_OSD_SUBOP_W, 0, PERF_RELEASE_ANY, false, "ReplicatedBackend::repop_commit",
                "has no sub-writes of erasure-coded pools"},
        {METRIC_OSD_SUBOP_W_IN_BYTES, 0, PERF_RELEASE_ANY, false, "measured with 16.2.15",
                "has 0.6 to 0.9 KB of message overhead for each sub-write, and none of those of erasure-coded pools"},
        {METRIC_OSD_SUBOP_W_LATENCY_COUNT, 0, PERF_RELEASE_ANY, false, "ReplicatedBackend::repop_commit",
                "has no sub-writes of erasure-coded pools"},
        {METRIC_OSD_SUBOP_W_LATENCY_TIME, 0, PERF_RELEASE_ANY, false, "ReplicatedBackend::repop_commit",
                "has no sub-writes of erasure-coded pools"},
        {METRIC_BLUESTORE_BUFFER_HIT_BYTES, PERF_RELEASE(12, 0, 0), PERF_RELEASE(12, 2, 9), true, "ceph#23773",
                "is no counter and stays when the others are reset"},
        {METRIC_BLUESTORE_BUFFER_HIT_BYTES, PERF_RELEASE(13, 0, 0), PERF_RELEASE(13, 2, 2), true, "ceph#23772",
                "is no counter and stays when the others are reset"},
        {METRIC_BLUEFS_READ_PREFETCH_BYTES, PERF_RELEASE(14, 0, 0), PERF_RELEASE_ANY, false, "ceph#38044",
                "has the same ranges again and again: what RocksDB asked for may be far less"},
};
/* clang-format on */

const struct perf_fault *perf_faults_get(size_t *ret_count)
{
        *ret_count = sizeof(faults) / sizeof(faults[0]);
        return faults;
}

/* At @p, which stays where the number ends. A number that is no part of a version is PART_MAX. */
static uint32_t part_read(const char **p)
{
        char *end;
        unsigned long part;

        if (!isdigit((unsigned char)**p))
                return 0;
        part = strtoul(*p, &end, 10);
        *p = *end == '.' ? end + 1 : end;
        return part < PART_MAX ? (uint32_t)part : PART_MAX;
}

uint32_t perf_release_parse(const char *text)
{
        uint32_t major = part_read(&text), minor = part_read(&text), patch = part_read(&text);

        return PERF_RELEASE(major, minor, patch);
}

bool perf_fault_applies(const struct perf_fault *fault, uint32_t release)
{
        return release >= fault->from && release < fault->until;
}
