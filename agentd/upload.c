#include "agentd/upload.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>

#include <curl/curl.h>

/* Slower than this for this long is a peer that hangs. */
#define LOW_SPEED_BYTES 1l
#define LOW_SPEED_SECONDS 15l

struct upload {
        sd_event *event;
        sd_event_source *timer;
        char *url, *ca_file;
        void (*done)(void *userdata, const struct upload_answer *answer);
        void *userdata;
        CURLM *multi;
        CURL *easy;
        struct curl_slist *headers;
        bool busy;
        bool too_long;
        char *answer;
        size_t size, capacity;
        char reason[CURL_ERROR_SIZE];
};

static void slist_cleanup(struct curl_slist **list)
{
        curl_slist_free_all(*list);
}

static size_t on_answer(char *data, size_t one, size_t size, void *userdata)
{
        struct upload *upload = userdata;
        char *answer;

        (void)one;
        if (upload->size + size > UPLOAD_ANSWER_MAX) {
                upload->too_long = true;
                return 0;
        }
        if (upload->size + size + 1 > upload->capacity) {
                answer = realloc(upload->answer, upload->size + size + 1);
                if (!answer)
                        return 0;
                upload->answer = answer;
                upload->capacity = upload->size + size + 1;
        }
        memcpy(upload->answer + upload->size, data, size);
        upload->size += size;
        upload->answer[upload->size] = '\0';
        return size;
}

static int status_of(const struct upload *upload, CURLcode code)
{
        long status = 0;

        switch (code) {
        case CURLE_OK:
                curl_easy_getinfo(upload->easy, CURLINFO_RESPONSE_CODE, &status);
                return status > 0 ? (int)status : -EIO;
        case CURLE_OPERATION_TIMEDOUT:
                return -ETIMEDOUT;
        case CURLE_COULDNT_CONNECT:
                return -ECONNREFUSED;
        case CURLE_COULDNT_RESOLVE_HOST:
                return -EHOSTUNREACH;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
                return -EKEYREJECTED;
        case CURLE_WRITE_ERROR:
                return upload->too_long ? -EMSGSIZE : -ENOMEM;
        default:
                return -EIO;
        }
}

static void finish(struct upload *upload, CURLcode code)
{
        struct upload_answer answer = {
                .status = status_of(upload, code),
                .body = upload->answer ? upload->answer : "",
                .size = upload->size,
                .reason = upload->reason[0] ? upload->reason : curl_easy_strerror(code),
        };
        curl_off_t seconds = 0;

        curl_easy_getinfo(upload->easy, CURLINFO_RETRY_AFTER, &seconds);
        if (seconds > 0 && seconds < 86400)
                answer.retry_after_us = (uint64_t)seconds * 1000000;
        curl_multi_remove_handle(upload->multi, upload->easy);
        upload->busy = false;
        upload->done(upload->userdata, &answer);
}

static void check_done(struct upload *upload)
{
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(upload->multi, &left)))
                if (message->msg == CURLMSG_DONE)
                        finish(upload, message->data.result);
}

static int on_socket_event(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct upload *upload = userdata;
        int running, action = 0;

        (void)source;
        action |= revents & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0;
        action |= revents & EPOLLOUT ? CURL_CSELECT_OUT : 0;
        action |= revents & EPOLLERR ? CURL_CSELECT_ERR : 0;
        curl_multi_socket_action(upload->multi, fd, action, &running);
        check_done(upload);
        return 0;
}

static int on_timer_event(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct upload *upload = userdata;
        int running;

        (void)source;
        (void)time_us;
        curl_multi_socket_action(upload->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        check_done(upload);
        return 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *socket_data)
{
        struct upload *upload = userdata;
        sd_event_source *source = socket_data;
        uint32_t events = 0;

        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                curl_multi_assign(upload->multi, fd, NULL);
                return 0;
        }
        events |= what & CURL_POLL_IN ? EPOLLIN : 0;
        events |= what & CURL_POLL_OUT ? EPOLLOUT : 0;
        if (source)
                return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
        if (sd_event_add_io(upload->event, &source, fd, events, on_socket_event, upload) < 0)
                return -1;
        curl_multi_assign(upload->multi, fd, source);
        return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *userdata)
{
        struct upload *upload = userdata;

        (void)multi;
        if (timeout_ms < 0)
                return sd_event_source_set_enabled(upload->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(upload->timer, (uint64_t)timeout_ms * 1000) < 0 ||
                sd_event_source_set_enabled(upload->timer, SD_EVENT_ONESHOT) < 0)
                return -1;
        return 0;
}

static int set_up_easy(struct upload *upload)
{
        CURL *easy = upload->easy = curl_easy_init();
        CURLcode code = CURLE_OK;

        if (!easy)
                return -ENOMEM;
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1l);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0l);
        /* The agent's peer is configured, never taken from the environment. */
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, UPLOAD_CONNECT_TIMEOUT_MS);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, UPLOAD_TIMEOUT_MS);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, LOW_SPEED_BYTES);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, LOW_SPEED_SECONDS);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1l);
        /* A name server that hangs must hold up neither the loop nor the end of the process. */
        curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1l);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1l);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2l);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, upload->reason);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, upload);
        if (upload->ca_file[0])
                code = curl_easy_setopt(easy, CURLOPT_CAINFO, upload->ca_file);
        return code == CURLE_OK ? 0 : -ENOMEM;
}

static int set_up(struct upload *upload)
{
        int r;

        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return -ENOMEM;
        upload->multi = curl_multi_init();
        if (!upload->multi)
                return -ENOMEM;
        curl_multi_setopt(upload->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(upload->multi, CURLMOPT_SOCKETDATA, upload);
        curl_multi_setopt(upload->multi, CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(upload->multi, CURLMOPT_TIMERDATA, upload);
        r = sd_event_add_time_relative(
                upload->event, &upload->timer, CLOCK_MONOTONIC, 0, 1000, on_timer_event, upload);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(upload->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        return set_up_easy(upload);
}

int upload_new(sd_event *event, const struct upload_options *options,
        void (*done)(void *userdata, const struct upload_answer *answer), void *userdata,
        struct upload **ret)
{
        CLEANUP(upload) struct upload *upload = calloc(1, sizeof(*upload));
        int r;

        if (!upload)
                return -ENOMEM;
        upload->event = sd_event_ref(event);
        upload->done = done;
        upload->userdata = userdata;
        upload->url = strdup(options->url);
        upload->ca_file = strdup(options->ca_file);
        if (!upload->url || !upload->ca_file)
                return -ENOMEM;
        r = set_up(upload);
        if (r < 0)
                return r;
        *ret = STEAL(upload);
        return 0;
}

struct upload *upload_free(struct upload *upload)
{
        if (!upload)
                return NULL;
        if (upload->busy)
                curl_multi_remove_handle(upload->multi, upload->easy);
        curl_easy_cleanup(upload->easy);
        curl_multi_cleanup(upload->multi);
        curl_slist_free_all(upload->headers);
        sd_event_source_disable_unref(upload->timer);
        sd_event_unref(upload->event);
        free(upload->answer);
        free(upload->url);
        free(upload->ca_file);
        free(upload);
        return NULL;
}

/* curl would wait a second for "100 Continue" before a large body, and the token is sent anyway. */
static int make_headers(const struct upload_request *request, struct curl_slist **ret)
{
        CLEANUP(slist) struct curl_slist *list = curl_slist_append(NULL, "Expect:");
        struct curl_slist *longer;

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; request->headers[i]; i++) {
                longer = curl_slist_append(list, request->headers[i]);
                if (!longer)
                        return -ENOMEM;
                list = longer;
        }
        *ret = STEAL(list);
        return 0;
}

static int set_body(struct upload *upload, const struct upload_request *request)
{
        if (!request->body) {
                curl_easy_setopt(upload->easy, CURLOPT_HTTPGET, 1l);
        } else {
                curl_easy_setopt(upload->easy, CURLOPT_POST, 1l);
                curl_easy_setopt(upload->easy, CURLOPT_POSTFIELDS, request->body);
                curl_easy_setopt(
                        upload->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
        }
        return curl_easy_setopt(upload->easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK
                       ? 0
                       : -ENOMEM;
}

int upload_start(struct upload *upload, const struct upload_request *request)
{
        CLEANUP(slist) struct curl_slist *headers = NULL;
        CLEANUP(str) char *url = NULL;
        int r;

        if (upload->busy)
                return -EBUSY;
        if (asprintf(&url, "%s%s", upload->url, request->path) < 0) {
                url = NULL;
                return -ENOMEM;
        }
        r = make_headers(request, &headers);
        if (r < 0)
                return r;
        r = set_body(upload, request);
        if (r < 0)
                return r;
        if (curl_easy_setopt(upload->easy, CURLOPT_URL, url) != CURLE_OK ||
                curl_easy_setopt(upload->easy, CURLOPT_HTTPHEADER, headers) != CURLE_OK)
                return -ENOMEM;
        curl_slist_free_all(upload->headers);
        upload->headers = STEAL(headers);
        upload->size = 0;
        upload->too_long = false;
        upload->reason[0] = '\0';
        if (upload->answer)
                upload->answer[0] = '\0';
        if (curl_multi_add_handle(upload->multi, upload->easy) != CURLM_OK)
                return -ENOMEM;
        upload->busy = true;
        return 0;
}
