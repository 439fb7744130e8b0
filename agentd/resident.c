#include "agentd/resident.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEGMENTS_MAX 16u /* of one object; it has four or five */

static int trim_object(struct dl_phdr_info *object, size_t size, void *userdata)
{
        uintptr_t page = *(const uintptr_t *)userdata;
        struct {
                uintptr_t begin, end;
        } ranges[SEGMENTS_MAX];
        unsigned n = 0;

        (void)size;
        for (unsigned i = 0; i < object->dlpi_phnum && n < SEGMENTS_MAX; i++) {
                const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
                uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
                uintptr_t end = begin + segment->p_memsz;

                if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
                        continue;
                ranges[n].begin = begin & ~(page - 1);
                ranges[n++].end = (end + page - 1) & ~(page - 1);
        }
        /* The table of segments lies in the first of them: to look at it again would bring it back,
         * and 16 pages with it. */
        for (unsigned i = 0; i < n; i++)
                /* Fails for the vDSO, which is no file. */
                (void)madvise((void *)ranges[i].begin, ranges[i].end - ranges[i].begin,
                        MADV_DONTNEED);
        return 0;
}

void resident_trim(void)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        dl_iterate_phdr(trim_object, &page);
        malloc_trim(0);
}
