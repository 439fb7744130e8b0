#include "agentd/resident.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int trim_object(struct dl_phdr_info *object, size_t size, void *userdata)
{
        uintptr_t page = *(const uintptr_t *)userdata;

        (void)size;
        for (unsigned i = 0; i < object->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
                uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
                uintptr_t end = begin + segment->p_memsz;

                if (segment->p_type != PT_LOAD || segment->p_flags & PF_W)
                        continue;
                begin &= ~(page - 1);
                end = (end + page - 1) & ~(page - 1);
                /* Fails for the vDSO, which is no file. */
                (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
        }
        return 0;
}

void resident_trim(void)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        dl_iterate_phdr(trim_object, &page);
        malloc_trim(0);
}
