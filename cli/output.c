#include "cli/output.h"

#include <errno.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool wants_colour(void)
{
        const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

        return !(no_colour && *no_colour) && terminal && strcmp(terminal, "dumb") != 0;
}

static int open_stream(struct output *output)
{
        output->stream = open_memstream(&output->text, &output->size);
        return output->stream ? 0 : -ENOMEM;
}

int output_init(struct output *output)
{
        struct winsize size;

        *output = (struct output){.terminal = isatty(STDOUT_FILENO)};
        output->colour = output->terminal && wants_colour();
        output->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
        if (output->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
                output->lines = size.ws_row;
        return open_stream(output);
}

void output_done(struct output *output)
{
        if (output->stream)
                fclose(output->stream);
        free(output->text);
        *output = (struct output){0};
}

/* Names from elsewhere may be UTF-8; a terminal of another character set gets '?' for each. */
static void to_ascii(char *text)
{
        char *to = text;

        for (; *text; text++) {
                if (((unsigned char)*text & 0xc0) == 0x80)
                        continue;
                *to = *text;
                if ((unsigned char)*text >= 0x80)
                        *to = '?';
                to++;
        }
        *to = '\0';
}

static void write_in_place(char *text)
{
        char *end;

        fputs("\033[H", stdout);
        for (; (end = strchr(text, '\n')); text = end + 1)
                printf("%.*s\033[K\n", (int)(end - text), text);
        printf("%s\033[K\033[J", text);
}

int output_show(struct output *output, bool in_place)
{
        if (fclose(output->stream) != 0) {
                output->stream = NULL;
                return -ENOMEM;
        }
        output->stream = NULL;
        if (!output->utf8)
                to_ascii(output->text);
        if (in_place && output->terminal)
                write_in_place(output->text);
        else
                fputs(output->text, stdout);
        if (fflush(stdout) != 0)
                return -errno;
        free(output->text);
        output->text = NULL;
        return open_stream(output);
}

const char *output_colour(const struct output *output, enum colour colour)
{
        static const char *const sequences[] = {
                [COLOUR_NONE] = "",
                [COLOUR_BOLD] = "\033[1m",
                [COLOUR_DIM] = "\033[2m",
                [COLOUR_GOOD] = "\033[32m",
                [COLOUR_NOTICE] = "\033[33m",
                [COLOUR_BAD] = "\033[1;31m",
        };

        return output->colour ? sequences[colour] : "";
}

const char *output_plain(const struct output *output)
{
        return output->colour ? "\033[0m" : "";
}
