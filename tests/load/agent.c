#include "tests/load/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"

#define HEAD_MAX 1024u
#define PAUSE_US 500000u /* before a connection is made again, and as much again at random */
#define BUSY_US 1000000u /* after a 503 that does not say how long */

/* Agents of one load are spread over the period, as those of a real cluster are. */
static uint64_t spread_us(const struct load *load, const struct agent *agent)
{
        return load->period_us * agent->number / load->n_agents;
}

uint64_t agent_made(const struct load *load, const struct agent *agent, uint64_t now_us)
{
        uint64_t first_us = load->start_us + spread_us(load, agent), made;

        if (load->period_us == 0)
                return load->count;
        if (now_us > load->end_us)
                now_us = load->end_us;
        if (now_us < first_us)
                return 0;
        made = (now_us - first_us) / load->period_us + 1;
        return made < load->count ? made : load->count;
}

static int64_t tick_of(const struct load *load, uint64_t sequence)
{
        return load->base_us + (int64_t)(sequence * load->set.rows * load->set.interval_us);
}

static void pause_agent(struct agent *agent, uint64_t pause_us)
{
        agent->next_us = clock_monotonic_us() + pause_us + (uint64_t)random() % pause_us;
}

static void drop_request(struct agent *agent)
{
        free(agent->out);
        free(agent->in);
        agent->out = agent->in = NULL;
        agent->out_size = agent->out_sent = agent->in_size = 0;
        agent->in_flight = 0;
}

static void disconnect(struct agent *agent)
{
        drop_request(agent);
        if (agent->fd >= 0)
                close(agent->fd);
        agent->fd = -1;
        agent->state = AGENT_APART;
}

void agent_done(struct agent *agent)
{
        disconnect(agent);
}

static void fail(struct load *load, struct agent *agent)
{
        load->broken++;
        disconnect(agent);
        pause_agent(agent, PAUSE_US);
}

/* ---- requests ---- */

static size_t write_head(const struct load *load, const struct agent *agent, const char *method,
        const char *path, const char *type, size_t size, char *ret)
{
        struct id host = world_host(agent->number);
        char id[ID_TEXT_MAX];
        uint64_t made = agent_made(load, agent, clock_monotonic_us());

        return (size_t)snprintf(ret, HEAD_MAX,
                "%s /api/v1/%s%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
                "Strata-Host: %s\r\nStrata-Plan-Revision: %" PRIu64 "\r\nStrata-Sent-At: %" PRId64
                "\r\nStrata-Backlog: %" PRIu64
                "\r\nStrata-Sources: diskstats,osd,host,agent\r\nContent-Length: %zu\r\n\r\n",
                method, path, agent->sends_facts ? id_format(&host, id) : "", type,
                id_format(&host, id), agent->revision, clock_realtime_us(),
                (made - agent->acked) * load->set.rows * load->set.n_sources, size);
}

static int make_facts(struct load *load, struct agent *agent)
{
        CLEANUP(str) char *text = world_make_facts(&load->set.world, agent->number);
        size_t size = text ? strlen(text) : 0, head;

        agent->out = malloc(HEAD_MAX + size);
        if (!text || !agent->out)
                return -ENOMEM;
        head = write_head(
                load, agent, "PUT", "facts/", "application/json", size, (char *)agent->out);
        memcpy(agent->out + head, text, size);
        agent->out_size = head + size;
        return 0;
}

/* One block of the past, which no other agent has the like of. */
static int write_history(struct load *load, struct agent *agent, size_t *ret_size)
{
        const uint8_t *bytes;
        int r;

        r = world_encode(&load->set.world, agent->number, tick_of(load, agent->acked),
                load->set.interval_us, load->set.rows, &bytes, ret_size);
        if (r < 0)
                return r;
        agent->in_flight = 1;
        agent->out = malloc(HEAD_MAX + *ret_size);
        if (!agent->out)
                return -ENOMEM;
        memcpy(agent->out + HEAD_MAX, bytes, *ret_size);
        return 0;
}

static int write_blocks(
        const struct load *load, struct agent *agent, uint64_t made, size_t *ret_size)
{
        uint64_t n = made - agent->acked;
        size_t size = 0;

        if (n > PERIODS_A_BODY)
                n = PERIODS_A_BODY;
        agent->in_flight = (uint32_t)n;
        agent->out = malloc(HEAD_MAX + n * template_set_size(&load->set));
        if (!agent->out)
                return -ENOMEM;
        for (uint64_t k = agent->acked; k < agent->acked + n; k++)
                for (uint32_t source = 0; source < load->set.n_sources; source++)
                        size += template_write(&load->set, agent->number, source, k,
                                tick_of(load, k), agent->out + HEAD_MAX + size);
        *ret_size = size;
        return 0;
}

static int make_blocks(struct load *load, struct agent *agent, uint64_t made)
{
        char head[HEAD_MAX];
        size_t size, head_size;
        int r;

        r = load->period_us == 0 ? write_history(load, agent, &size)
                                 : write_blocks(load, agent, made, &size);
        if (r < 0)
                return r;
        head_size = write_head(
                load, agent, "POST", "blocks", "application/vnd.strata.blocks", size, head);
        /* The head ends where the body begins. */
        agent->out_sent = HEAD_MAX - head_size;
        memcpy(agent->out + agent->out_sent, head, head_size);
        agent->out_size = HEAD_MAX + size;
        load->bytes += size;
        return 0;
}

static void watch(const struct load *load, struct agent *agent, uint32_t events)
{
        struct epoll_event event = {.events = events, .data.ptr = agent};

        (void)epoll_ctl(load->epoll, EPOLL_CTL_MOD, agent->fd, &event);
}

static void send_more(struct load *load, struct agent *agent)
{
        ssize_t n = send(agent->fd, agent->out + agent->out_sent, agent->out_size - agent->out_sent,
                MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN && errno != EINPROGRESS) {
                fail(load, agent);
                return;
        }
        agent->out_sent += n > 0 ? (size_t)n : 0;
        if (agent->out_sent < agent->out_size) {
                if (agent->state != AGENT_CONNECTING)
                        watch(load, agent, EPOLLIN | EPOLLOUT);
                agent->state = AGENT_CONNECTING;
                return;
        }
        if (agent->state == AGENT_CONNECTING)
                watch(load, agent, EPOLLIN);
        agent->state = AGENT_WAITING;
}

static void begin_request(struct load *load, struct agent *agent, uint64_t made)
{
        agent->sends_facts = load->with_facts && !agent->facts;
        agent->begin_us = clock_monotonic_us();
        if ((agent->sends_facts ? make_facts(load, agent) : make_blocks(load, agent, made)) < 0) {
                fail(load, agent);
                return;
        }
        load->requests++;
        send_more(load, agent);
}

static int connect_agent(struct load *load, struct agent *agent)
{
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = agent};

        agent->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (agent->fd < 0)
                return -errno;
        (void)setsockopt(agent->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (connect(agent->fd, (struct sockaddr *)&load->address, sizeof(load->address)) < 0 &&
                errno != EINPROGRESS)
                return -errno;
        if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, agent->fd, &event) < 0)
                return -errno;
        agent->state = AGENT_CONNECTING;
        return 0;
}

void agent_look(struct load *load, struct agent *agent, uint64_t now_us)
{
        uint64_t made = agent_made(load, agent, now_us);

        agent->next_us = UINT64_MAX; /* until something happens */
        if (agent->state != AGENT_APART && agent->state != AGENT_IDLE)
                return;
        if (made == agent->acked) {
                if (made < load->count && load->end_us == UINT64_MAX)
                        agent->next_us =
                                load->start_us + spread_us(load, agent) + made * load->period_us;
                return;
        }
        if (agent->state == AGENT_APART) {
                if (connect_agent(load, agent) < 0) {
                        fail(load, agent);
                        return;
                }
        }
        begin_request(load, agent, made);
}

/* ---- answers ---- */

static void note_latency(struct load *load, const struct agent *agent)
{
        uint64_t latency_us = clock_monotonic_us() - agent->begin_us;

        if (latency_us > load->latency_max_us)
                load->latency_max_us = latency_us;
        if (latency_us / LATENCY_UNIT_US < LATENCY_UNITS)
                load->latencies[latency_us / LATENCY_UNIT_US]++;
        else
                load->late++;
}

double load_latency_ms(const struct load *load, double share)
{
        uint64_t all = load->late, seen = 0;
        uint32_t i = 0;

        for (i = 0; i < LATENCY_UNITS; i++)
                all += load->latencies[i];
        for (i = 0; i < LATENCY_UNITS && (double)seen < share * (double)all; i++)
                seen += load->latencies[i];
        return i * LATENCY_UNIT_US / 1e3;
}

static void list_history(const struct load *load, const struct agent *agent, uint64_t sequence)
{
        int64_t tick_us = tick_of(load, sequence);
        struct id host = world_host(agent->number);
        char id[ID_TEXT_MAX];

        fprintf(load->acknowledged, "%s history %u %" PRId64, id_format(&host, id),
                SOURCE_DISKSTATS, tick_us);
        for (uint32_t row = 0; row < load->set.rows; row++)
                fprintf(load->acknowledged, " %" PRId64,
                        world_time_us(
                                agent->number, tick_us + (int64_t)(row * load->set.interval_us)));
        fputc('\n', load->acknowledged);
}

static void list_block(
        const struct load *load, const struct agent *agent, uint32_t source, uint64_t sequence)
{
        int64_t tick_us = tick_of(load, sequence);
        struct block_header header =
                template_header(&load->set, agent->number, source, sequence, tick_us);
        const int64_t *times_us = template_times(&load->set, agent->number, source, sequence);
        char host[ID_TEXT_MAX], boot[ID_TEXT_MAX];

        if (load->period_us == 0) {
                list_history(load, agent, sequence);
                return;
        }
        fprintf(load->acknowledged, "%s %s %u %" PRIu64, id_format(&header.host, host),
                id_format(&header.boot, boot), header.source, header.sequence);
        for (uint32_t row = 0; row < header.rows; row++)
                fprintf(load->acknowledged, " %" PRId64, tick_us + times_us[row]);
        fputc('\n', load->acknowledged);
}

static void list_blocks(const struct load *load, const struct agent *agent)
{
        for (uint64_t k = agent->acked; k < agent->acked + agent->in_flight; k++)
                for (uint32_t source = 0; source < load->set.n_sources; source++)
                        list_block(load, agent, source, k);
}

static void note_acknowledged(struct load *load, struct agent *agent, const char *body)
{
        const char *duplicates = strstr(body, "\"duplicates\":");
        const char *revision = strstr(body, "\"revision\":");

        note_latency(load, agent);
        if (agent->sends_facts) {
                agent->facts = true;
                return;
        }
        if (load->acknowledged)
                list_blocks(load, agent);
        for (uint32_t source = 0; source < load->set.n_sources; source++)
                load->values += (uint64_t)agent->in_flight * load->set.rows *
                                load->set.templates[source][0].frame.n_columns;
        load->blocks += (uint64_t)agent->in_flight * load->set.n_sources;
        load->rows += (uint64_t)agent->in_flight * load->set.n_sources * load->set.rows;
        if (duplicates)
                load->duplicates += strtoull(duplicates + strlen("\"duplicates\":"), NULL, 10);
        if (revision)
                agent->revision = strtoull(revision + strlen("\"revision\":"), NULL, 10);
        agent->acked += agent->in_flight;
}

static void take_answer(struct load *load, struct agent *agent, const char *head, const char *body)
{
        unsigned status = (unsigned)strtoul(head + strcspn(head, " "), NULL, 10);
        const char *later = strcasestr(head, "\r\nRetry-After:");
        uint64_t pause_us = 0;
        bool close;

        if (status == 200 || status == 204) {
                note_acknowledged(load, agent, body);
        } else if (status == 503 || status == 429) {
                load->busy++;
                pause_us = later && later < body ? strtoull(later + 14, NULL, 10) * 1000000 : 0;
                if (pause_us == 0)
                        pause_us = BUSY_US;
        } else {
                if (load->refused++ == 0)
                        fprintf(stderr, "load-agents: refused: %.300s\n", head);
                agent->acked += agent->in_flight;
                agent->facts = true;
        }
        close = strncmp(head, "HTTP/1.1", 8) != 0 || strcasestr(head, "\r\nConnection: close");
        drop_request(agent); /* the head, too */
        agent->state = AGENT_IDLE;
        if (close)
                disconnect(agent);
        if (pause_us)
                pause_agent(agent, pause_us);
        else
                agent_look(load, agent, clock_monotonic_us());
}

/* Whether the answer at agent->in, with a NUL behind it, is complete. */
static bool is_complete(const struct agent *agent, const char **ret_body)
{
        const char *head = (const char *)agent->in, *end = strstr(head, "\r\n\r\n");
        const char *length = strcasestr(head, "\r\nContent-Length:");
        size_t size = length && length < end ? strtoull(length + 17, NULL, 10) : 0;

        if (!end)
                return false;
        *ret_body = end + 4;
        return agent->in_size >= (size_t)(*ret_body - head) + size;
}

static void receive(struct load *load, struct agent *agent)
{
        const char *body;
        uint8_t *in;
        ssize_t n;

        in = realloc(agent->in, agent->in_size + 4096 + 1);
        if (!in) {
                fail(load, agent);
                return;
        }
        agent->in = in;
        n = recv(agent->fd, agent->in + agent->in_size, 4096, 0);
        if (n < 0 && errno == EAGAIN)
                return;
        if (n <= 0 || agent->in_size + (size_t)n > ANSWER_MAX) {
                fail(load, agent);
                return;
        }
        agent->in_size += (size_t)n;
        agent->in[agent->in_size] = '\0';
        /* An answer may come before all was sent: it refuses. */
        if (agent->state == AGENT_WAITING || agent->state == AGENT_CONNECTING) {
                if (is_complete(agent, &body))
                        take_answer(load, agent, (const char *)agent->in, body);
        } else {
                fail(load, agent); /* nothing was asked */
        }
}

void agent_event(struct load *load, struct agent *agent, uint32_t events)
{
        if (agent->fd < 0)
                return;
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                /* An idle connection that the collector closed is no failure. */
                if (agent->state == AGENT_IDLE && recv(agent->fd, &(char){0}, 1, MSG_PEEK) <= 0) {
                        uint64_t next_us = agent->next_us;

                        disconnect(agent);
                        agent->next_us = next_us;
                        return;
                }
                receive(load, agent);
                return;
        }
        if (events & EPOLLOUT && agent->state == AGENT_CONNECTING)
                send_more(load, agent);
}
