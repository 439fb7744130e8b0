#include <locale.h>

#include "cli/command.h"

int main(int argc, char **argv)
{
        /* Only for what the terminal can show: numbers keep their point. */
        setlocale(LC_CTYPE, "");
        return command_main(argc, argv);
}
