/*
 * The fuzzer of the spool's reader: the input is a segment file as a crash may have left it. The
 * checks of its head and records would stop nearly every input at the door, so the first byte says
 * whether they are made right. Whatever lies in the file, what is read must be whole blocks, and
 * reading must end.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/spool-segment.h"
#include "agentd/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
        if (!condition)
                abort();
}

static const char *folder(void)
{
        static char path[] = "/dev/shm/strata-fuzz-XXXXXX";
        static bool made;

        if (!made)
                check(mkdtemp(path) != NULL);
        made = true;
        return path;
}

static void write_segment(int fd, const uint8_t *data, size_t size)
{
        uint8_t head[SEGMENT_HEAD_BYTES] = "STRSPL02";

        check(write(fd, head, sizeof(head)) == sizeof(head));
        check(write(fd, data, size) == (ssize_t)size);
}

/* A record around each piece; the piece's first two bytes are its length. */
static void write_records(int fd, const uint8_t *data, size_t size)
{
        struct segment_trailer trailer;
        struct segment_record record;

        write_segment(fd, NULL, 0);
        while (size > 2) {
                size_t length = (size_t)data[0] | (size_t)data[1] << 8;

                data += 2;
                size -= 2;
                if (length > size)
                        length = size;
                memset(&record, 0, sizeof(record));
                memcpy(&record.header, data,
                        length < sizeof(record.header) ? length : sizeof(record.header));
                segment_seal_record(&record, (uint32_t)length, &trailer);
                if (length % 7 == 0)
                        record.done = record.check;
                check(write(fd, &record, sizeof(record)) == sizeof(record));
                check(write(fd, data, length) == (ssize_t)length);
                check(write(fd, &trailer, sizeof(trailer)) == sizeof(trailer));
                data += length;
                size -= length;
        }
}

static struct moment look(void *userdata)
{
        (void)userdata;
        return (struct moment){1, 1, 1};
}

static void read_all(struct spool *spool)
{
        struct block_header header;
        struct spool_batch batch;
        size_t at, one;
        int rounds = 0;

        while (spool_read(spool, 1000, &batch) == 1) {
                at = 0;
                for (uint32_t i = 0; i < batch.blocks; i++) {
                        check(block_peek(batch.bytes + at, batch.size - at, &header, &one) == 0);
                        at += one;
                }
                check(at == batch.size);
                check(++rounds < 100000);
                if (rounds % 3 == 0)
                        check(spool_refuse(spool, 0, true, &header) == 0);
                else
                        spool_acknowledge(spool);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct agent_counters counters;
        struct spool_options options = {
                .folder = folder(),
                .bytes_max = SPOOL_BYTES_MIN,
                .clock = look,
                .counters = &counters,
        };
        struct spool *spool = NULL;
        uint64_t damaged;
        char path[64];
        int fd;

        if (size == 0)
                return 0;
        snprintf(path, sizeof(path), "%s/0000000000000001.spool", folder());
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        check(fd >= 0);
        if (data[0] % 3 == 0)
                check(write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
        else if (data[0] % 3 == 1)
                write_segment(fd, data + 1, size - 1);
        else
                write_records(fd, data + 1, size - 1);
        close(fd);
        check(spool_open(&options, &spool, &damaged) == 0);
        read_all(spool);
        spool_close(spool);
        return 0;
}
