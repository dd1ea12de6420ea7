/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * testcomm.h - the objects of the shell, and one table of commands a noun
 *
 * Design notes
 * - A command gets its words and the shell; it returns 0, or -1 after tc_error() has printed why
 *   in one sentence. It never ends the shell.
 * - Every operation is a request with a name, complete or not, until "reqs clear"; so is its
 *   buffer. The result of the last command is kept for "expect".
 * - Nothing here waits without a deadline, and an interrupt ends any wait.
 */
#ifndef TESTCOMM_H
#define TESTCOMM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ucp/api/ucp.h>

#define TC_MAX_WORKERS 64
#define TC_MAX_EPS     1024
#define TC_MAX_REQS    65536
#define TC_MAX_MSGS    1024
#define TC_MAX_LIST    1024 /* of each kind of other objects */
#define TC_MAX_WORDS   64
#define TC_MAX_NAME    32
#define TC_MAX_NAME_WORDS 3 /* of a command */
#define TC_MAX_LINE    65536
#define TC_MAX_SIZE    (UINT64_C(1) << 32)
#define TC_DATA	       "SIZE|\"TEXT\"" /* in the arguments of a command that takes both */

struct tc_worker {
	char name[TC_MAX_NAME];
	ucp_worker_h worker;
	uint64_t turns;
	uint64_t busy_turns;
	uint64_t sent, sent_bytes;
	uint64_t received, received_bytes;
	uint64_t failed;
	struct tc_am *am; /* handlers of active messages */
};

struct tc_ep {
	char name[TC_MAX_NAME];
	ucp_ep_h ep;
	struct tc_worker *worker;
	ucs_status_t error;    /* status of the error handler's call */
	bool reply;            /* the way back of an active message; the library owns it */
	uint64_t tx_at, rx_at; /* bytes of its stream so far */
};

enum tc_op {
	TC_SEND,
	TC_RECV,
	TC_FLUSH,
	TC_CLOSE,
	TC_PUT,
	TC_GET,
	TC_ATOMIC,
	TC_AM_SEND,
	TC_AM, /* an active message that has come */
	TC_STREAM_SEND,
	TC_STREAM_RECV
};

struct tc_req {
	char name[TC_MAX_NAME];
	enum tc_op op;
	struct tc_worker *worker; /* NULL: destroyed */
	void *request;            /* while in progress; for cancel */
	bool done;
	ucs_status_t status;
	uint64_t tag;    /* as posted; of a completed receive, the sender's; of an active message its id */
	uint64_t at;     /* of put, get, atomic: offset in the memory; of a stream: in all its bytes */
	uint64_t size;   /* of the buffer */
	uint64_t length; /* of the message */
	uint8_t *buf;
	ucp_tag_recv_info_t info;
	uint64_t operand;  /* of an atomic */
	struct tc_ep *ep;  /* of a stream, until it is closed */
	size_t got;        /* of a stream, when it completes at once */
	uint8_t *header;   /* of an active message */
	size_t header_len;
	ucp_ep_h reply;    /* the way back of an active message, or NULL */
	bool taken;        /* of an active message: shown by am recv */
};

/* Memory that peers put to and get from. */
struct tc_mem {
	char name[TC_MAX_NAME];
	ucp_mem_h mem;
	uint8_t *addr;
	uint64_t size;
};

/* The key to memory of a peer, on one endpoint. */
struct tc_key {
	char name[TC_MAX_NAME];
	struct tc_ep *ep;
	ucp_rkey_h rkey;
	uint64_t addr;
	uint64_t size;
};

struct tc_listener {
	char name[TC_MAX_NAME];
	ucp_listener_h listener;
	struct tc_worker *worker;
	struct tc *tc;
};

/* A connection request without an answer. */
struct tc_connreq {
	char name[TC_MAX_NAME];
	ucp_conn_request_h request;
	struct tc_listener *listener;
	bool shown;
};

struct tc_msg {
	char name[TC_MAX_NAME];
	ucp_tag_message_h message;
	struct tc_worker *worker;
	ucp_tag_recv_info_t info;
};

/* What "expect" compares with. */
struct tc_last {
	ucs_status_t status;
	uint64_t length;
	uint64_t tag;
	uint64_t count;
	const struct tc_req *req; /* for its text */
};

struct tc {
	ucp_context_h context; /* made with the first worker */
	ucp_config_t *config;
	struct tc_worker *worker[TC_MAX_WORKERS];
	struct tc_ep *ep[TC_MAX_EPS];
	struct tc_req *req[TC_MAX_REQS];
	struct tc_msg *msg[TC_MAX_MSGS];
	unsigned n_workers, n_eps, n_reqs, n_msgs;
	unsigned next_worker, next_req, next_msg, next_connreq;
	struct tc_mem *mem[TC_MAX_LIST]; /* these lists have gaps */
	struct tc_key *key[TC_MAX_LIST];
	struct tc_listener *listener[TC_MAX_LIST];
	struct tc_connreq *connreq[TC_MAX_LIST];
	struct tc_last last;
	FILE *out;        /* of the present command */
	uint64_t pattern; /* set pattern */
	uint64_t timeout_ms;
	bool idle;       /* run turns while waiting for a line */
	bool verbose;    /* show each command before it runs */
	bool history;    /* keep the lines of the prompt for the next time */
	bool stop_error; /* the first failed command ends the shell */
	bool quit;
	int status; /* exit status */
};

struct tc_cmd {
	const char *name; /* one word to three */
	const char *args; /* completion reads it: see complete.c */
	const char *help;
	int min, max;                                     /* words after the name */
	int (*run)(struct tc *tc, int argc, char **argv); /* argv: the words after the name */
};

extern const struct tc_cmd tc_cmd_worker[];
extern const struct tc_cmd tc_cmd_ep[];
extern const struct tc_cmd tc_cmd_msg[];
extern const struct tc_cmd tc_cmd_rma[];
extern const struct tc_cmd tc_cmd_am[];
extern const struct tc_cmd tc_cmd_listen[];
extern const struct tc_cmd tc_cmd_stat[];
extern const struct tc_cmd tc_cmd_cci[];
extern const struct tc_cmd tc_cmd_cci_msg[];
extern const struct tc_cmd tc_mode_echo[];
extern const struct tc_cmd tc_mode_gen[];
extern const struct tc_cmd tc_prompt[];

/* prompt.c */
int tc_error(struct tc *tc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int tc_run_text(struct tc *tc, const char *text);
int tc_run_fd(struct tc *tc, int fd, const char *name);
void tc_columns(FILE *out, const char *const *words, unsigned n, unsigned columns);
void tc_usage(FILE *out, const char *begin, const struct tc_cmd *c);
int tc_input_wait(struct tc *tc, int fd);
int tc_word_next(const char **p, char **out);
const struct tc_cmd *tc_cmd_at(size_t n);
const struct tc_cmd *tc_cmd_find(int argc, char **argv, int *used);
int tc_number(struct tc *tc, const char *text, uint64_t *out);
int tc_mask(struct tc *tc, const char *text, uint64_t *out);
uint64_t tc_now_us(void);
bool tc_interrupted(void);
bool tc_interrupt_clear(void);
void tc_interrupt_setup(void);
const char *tc_status_name(ucs_status_t status);
const char *tc_status_at(size_t n);

/* objects.c */
/** @return the object with this name out of a list of pointers to such, or NULL */
void *tc_find(void *const *list, const char *name);
/** The same, and print an error if there is none. */
void *tc_need(struct tc *tc, void *const *list, const char *what, const char *name);
/** Make a zeroed object of this size, enter it with a free name; NULL after an error was printed. */
void *tc_new(struct tc *tc, void **list, size_t size, const char *name);
/** Remove an object from its list and free it. */
void tc_remove(void **list, void *object);

/* edit.c, or edit_plain.c where there is no libedit */
int tc_edit_run(struct tc *tc);

/* cmd_worker.c */
struct tc_worker *tc_worker_find(struct tc *tc, const char *name);
unsigned tc_progress(struct tc *tc);
unsigned tc_progress_one(struct tc_worker *w);
int tc_name_check(struct tc *tc, const char *name);
int tc_library(struct tc *tc);
void tc_workers_destroy(struct tc *tc);

/* cmd_cci.c */
unsigned tc_cci_progress(void);
void tc_cci_end(void);

/* cmd_ep.c */
struct tc_ep *tc_ep_find(struct tc *tc, const char *name);
struct tc_ep *tc_ep_new(struct tc *tc, const char *name, struct tc_worker *w);
void tc_ep_add(struct tc *tc, struct tc_ep *ep);
int tc_ep_open(struct tc *tc, struct tc_ep *ep, ucp_ep_params_t *params, bool peer);
int tc_ep_options(struct tc *tc, int argc, char **argv, bool *wait, bool *peer);
char *tc_file(struct tc *tc, const char *path, bool wait);
int tc_hex(const char *text, uint8_t *out, size_t *len, size_t max);
void tc_eps_close(struct tc *tc);

/* cmd_rma.c, cmd_am.c, cmd_listen.c */
void tc_keys_drop(struct tc *tc, struct tc_ep *ep);
void tc_mems_free(struct tc *tc);
void tc_am_drop(struct tc_worker *w);
void tc_listeners_drop(struct tc *tc, struct tc_worker *w);

/* cmd_msg.c */
struct tc_req *tc_req_find(struct tc *tc, const char *name);
struct tc_req *tc_req_new(
	struct tc *tc, enum tc_op op, struct tc_worker *w, uint64_t tag, uint64_t size);
struct tc_req *tc_req_data(
	struct tc *tc, enum tc_op op, struct tc_worker *w, uint64_t tag, uint64_t at, const char *text);
void tc_req_param(ucp_request_param_t *param, struct tc_req *r);
void tc_req_done(struct tc_req *r, ucs_status_t status);
int tc_req_report(struct tc *tc, struct tc_req *r);
void tc_req_posted(struct tc *tc, struct tc_req *r, ucs_status_ptr_t p);
int tc_req_wait(struct tc *tc, struct tc_req *r, uint64_t ms);
void tc_req_free(struct tc *tc, struct tc_req *r);
void tc_req_last(struct tc *tc, const struct tc_req *r);
void tc_req_print(struct tc *tc, const struct tc_req *r);
void tc_reqs_free(struct tc *tc);
void tc_reqs_drop(struct tc *tc, struct tc_worker *w);
int tc_send_post(struct tc *tc, struct tc_ep *ep, struct tc_req *r, bool sync);
int tc_recv_post(struct tc *tc, struct tc_req *r, uint64_t mask, bool imm);
int tc_mrecv_post(struct tc *tc, struct tc_req *r, ucp_tag_message_h message);
void tc_send_done(void *request, ucs_status_t status, void *user_data);
void tc_fill(uint8_t *buf, uint64_t len, uint64_t pattern, uint64_t tag, uint64_t at);
uint64_t tc_mismatch(const uint8_t *buf, uint64_t len, uint64_t pattern, uint64_t tag, uint64_t at);

#endif /* TESTCOMM_H */
