#include "agentd/spool-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

void spool_remove_segment(struct spool *spool, unsigned index)
{
        segment_unlink(spool->segments[index]);
        segment_free(spool->segments[index]);
        spool->n_segments--;
        memmove(spool->segments + index, spool->segments + index + 1,
                (spool->n_segments - index) * sizeof(struct segment *));
}

void spool_update_counters(struct spool *spool)
{
        struct agent_counters *counters = spool->options.counters;
        uint64_t bytes = spool->memory.bytes, blocks = spool->memory.blocks,
                 rows = spool->memory.rows;

        for (unsigned i = spool->n_segments; i-- > 0;) {
                const struct segment *segment = spool->segments[i];

                if (segment->blocks == 0 && i + 1 < spool->n_segments) {
                        spool_remove_segment(spool, i);
                        continue;
                }
                bytes += segment->blocks > 0 ? segment->end - SEGMENT_HEAD_BYTES : 0;
                blocks += segment->blocks;
                rows += segment->rows;
        }
        counters->spool_bytes = bytes;
        counters->spool_blocks = blocks;
        counters->spool_rows = rows;
}

bool spool_is_durable(const struct spool *spool, int *ret_error)
{
        *ret_error = spool->error;
        return spool->error == 0;
}

uint64_t spool_get_damaged(const struct spool *spool)
{
        return spool->damaged;
}

static int is_segment(const struct dirent *entry)
{
        uint64_t number;

        return segment_parse_name(entry->d_name, &number) == 0;
}

/* All names are equally long, so their order is that of the numbers. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* One that cannot be read is left where it is: it may be readable another time. One that is no
 * segment (its first write was cut) is removed. */
static void open_segment(struct spool *spool, uint64_t number, uint64_t *damaged)
{
        struct segment *segment = NULL;
        bool cut = false;
        int r;

        spool->next_number = number + 1;
        r = segment_open(spool->folder_fd, number, &segment, &cut);
        if (r < 0) {
                if (r == -EBADMSG)
                        segment_unlink(
                                &(struct segment){.folder_fd = spool->folder_fd, .number = number});
                ++*damaged;
                return;
        }
        *damaged += cut;
        spool->segments[spool->n_segments++] = segment;
}

/* The clock of ages goes on, and the last segment is appended to again: an agent that is killed
 * over and over leaves no more files than one that is not. */
static void go_on(struct spool *spool, const struct moment *now)
{
        struct segment *last =
                spool->n_segments > 0 ? spool->segments[spool->n_segments - 1] : NULL;
        const struct segment_stamp *newest = NULL;

        for (unsigned i = 0; i < spool->n_segments; i++) {
                const struct segment_stamp *stamp = &spool->segments[i]->newest;

                if (stamp->written_us > 0 && (!newest || stamp->written_us > newest->written_us))
                        newest = stamp;
        }
        spool->epoch =
                spool_age_begin(last ? &last->epoch : NULL, newest, &spool->options.boot, now);
        if (last && !last->closed)
                spool->error = segment_resume(last, &spool->epoch, spool->segment_bytes);
}

static int open_folder(struct spool *spool, const char *folder, uint64_t *damaged)
{
        struct dirent **entries = NULL;
        uint64_t number;
        int n;

        spool->folder = strdup(folder);
        if (!spool->folder)
                return -ENOMEM;
        if (mkdir(folder, 0700) < 0 && errno != EEXIST && errno != EROFS)
                return -errno;
        spool->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (spool->folder_fd < 0)
                return -errno;
        n = scandirat(spool->folder_fd, ".", &entries, is_segment, compare_names);
        if (n < 0)
                return -errno;
        for (int i = 0; i < n; i++) {
                /* There are more only when strangers put them there; the newest ones are ours. */
                if (i >= n - (int)SEGMENTS_MAX &&
                        segment_parse_name(entries[i]->d_name, &number) == 0)
                        open_segment(spool, number, damaged);
                free(entries[i]);
        }
        free(entries);
        return 0;
}

int spool_open(const struct spool_options *options, struct spool **ret, uint64_t *ret_damaged)
{
        CLEANUP(spool) struct spool *spool = calloc(1, sizeof(*spool));
        struct moment now = options->clock(options->userdata);
        uint64_t damaged = 0;
        int r;

        if (!spool)
                return -ENOMEM;
        spool->folder_fd = -1;
        spool->options = *options;
        spool->segment_bytes = options->bytes_max / SPOOL_SEGMENTS;
        spool->next_number = 1;
        spool_go_away(spool);
        spool->error = options->folder ? 0 : -ENOENT;
        r = block_encoder_new(&spool->encoder);
        if (r < 0)
                return r;
        r = options->folder ? open_folder(spool, options->folder, &damaged) : 0;
        if (r < 0)
                return r;
        go_on(spool, &now);
        spool_drop_old(spool);
        spool_update_counters(spool);
        *ret_damaged = damaged;
        *ret = STEAL(spool);
        return 0;
}

struct spool *spool_close(struct spool *spool)
{
        if (!spool)
                return NULL;
        if (spool->error == 0)
                (void)spool_write_gaps(spool);
        for (unsigned i = 0; i < spool->n_segments; i++)
                segment_free(spool->segments[i]);
        memory_queue_done(&spool->memory);
        if (spool->folder_fd >= 0)
                close(spool->folder_fd);
        block_encoder_free(spool->encoder);
        free(spool->buffer);
        free(spool->folder);
        free(spool);
        return NULL;
}
