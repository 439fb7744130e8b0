#pragma once
/*
 * The memory that the agent keeps. libcurl brings forty libraries, whose relocation and
 * constructors touch 2 MB of text and tables once and never again; unless the node is short of
 * memory, the kernel would count them as resident for as long as the agent runs.
 */

/*
 * Unmaps the pages of all read-only segments (text, constants) and returns free heap to the kernel.
 * What is needed again comes back from the page cache with a minor fault. Segments that were ever
 * written (data, relocated tables) stay as they are.
 */
void resident_trim(void);
