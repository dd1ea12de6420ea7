/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_util.c - what test programs of CCI share
 */
#include <sys/socket.h>
#include <sys/un.h>

#include "cci_util.h"

const char *
util_transport(void)
{
	const char *name = getenv("PLX_WORKER_DEVICES");

	return name != NULL ? name : "shm";
}

bool
util_is_rdma(void)
{
	return strcmp(util_transport(), "net_mlx") == 0;
}

void
util_end_open(struct end *e, const char *service, bool with_fd)
{
	util_end_open_on(e, -1, service, with_fd);
}

void
util_end_open_on(struct end *e, int at, const char *service, bool with_fd)
{
	cci_device_t *const *devices, *device = NULL;
	uint32_t caps;
	char *uri;

	memset(e, 0, sizeof(*e));
	e->fd = -1;
	e->kept = calloc(UTIL_MAX_KEPT, sizeof(*e->kept));
	if (e->kept == NULL)
		UTIL_DIE("no memory");
	UTIL_OK(cci_init(CCI_ABI_VERSION, 0, &caps));
	UTIL_OK(cci_get_devices(&devices));
	if (at >= 0)
		device = devices[at];
	if (service == NULL)
		UTIL_OK(cci_create_endpoint(device, 0, &e->ep, with_fd ? &e->fd : NULL));
	else
		UTIL_OK(cci_create_endpoint_at(device, service, 0, &e->ep, with_fd ? &e->fd : NULL));
	UTIL_OK(cci_get_opt(e->ep, CCI_OPT_ENDPT_URI, &uri));
	if (strlen(uri) >= sizeof(e->uri))
		UTIL_DIE("a URI of %zu bytes", strlen(uri));
	strcpy(e->uri, uri);
	free(uri);
}

void
util_end_close(struct end *e)
{
	UTIL_OK(cci_destroy_endpoint(e->ep));
	UTIL_OK(cci_finalize());
	free(e->kept);
}

unsigned
util_end_poll(struct end *e)
{
	cci_event_t *ev;
	unsigned n = 0;

	for (;;) {
		ev = (cci_event_t *)(uintptr_t)1;
		e->last = cci_get_event(e->ep, &ev);
		if (e->last != CCI_SUCCESS)
			break;
		if (e->n_kept == UTIL_MAX_KEPT)
			UTIL_DIE("too many events are kept");
		e->kept[e->n_kept++] = ev;
		n++;
	}
	if ((e->last != CCI_EAGAIN && e->last != CCI_ENOBUFS) || ev != NULL)
		UTIL_DIE("cci_get_event: %s, event %p", cci_strerror(e->ep, e->last), (const void *)ev);
	return n;
}

cci_event_t *
util_end_take(struct end *e, cci_event_type_t type)
{
	cci_event_t *ev;
	unsigned i = 0;

	while (i < e->n_kept && e->kept[i]->type != type)
		i++;
	if (i == e->n_kept)
		return NULL;
	ev = e->kept[i];
	e->n_kept--;
	memmove(&e->kept[i], &e->kept[i + 1], (e->n_kept - i) * sizeof(e->kept[0]));
	return ev;
}

unsigned
util_end_count(const struct end *e, cci_event_type_t type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->n_kept; i++)
		n += e->kept[i]->type == type;
	return n;
}

void
util_return(cci_event_t *ev)
{
	UTIL_OK(cci_return_event(ev));
}

void
util_pair_open(struct pair *p)
{
	util_end_open(&p->e[0], NULL, false);
	util_end_open(&p->e[1], NULL, false);
}

void
util_pair_connect(struct pair *p, cci_conn_attribute_t attribute, cci_connection_t **conn0,
	cci_connection_t **conn1)
{
	cci_event_t *ev;

	UTIL_OK(cci_connect(p->e[0].ep, p->e[1].uri, NULL, 0, attribute, NULL, 0, NULL));
	ev = util_pair_wait(p, 1, CCI_EVENT_CONNECT_REQUEST);
	if (ev == NULL)
		UTIL_DIE("no connection request came");
	UTIL_OK(cci_accept(ev, NULL));
	util_return(ev);
	ev = util_pair_wait(p, 0, CCI_EVENT_CONNECT);
	if (ev == NULL || ev->connect.status != CCI_SUCCESS)
		UTIL_DIE("the connection did not come about");
	*conn0 = ev->connect.connection;
	util_return(ev);
	ev = util_pair_wait(p, 1, CCI_EVENT_ACCEPT);
	if (ev == NULL || ev->accept.status != CCI_SUCCESS)
		UTIL_DIE("the connection was not accepted");
	*conn1 = ev->accept.connection;
	util_return(ev);
}

void
util_pair_open_with(struct pair *p, cci_conn_attribute_t attribute)
{
	util_pair_open(p);
	util_pair_connect(p, attribute, &p->e[0].conn, &p->e[1].conn);
}

void
util_pair_close(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->e[i].conn != NULL)
			UTIL_OK(cci_disconnect(p->e[i].conn));
	}
	util_end_close(&p->e[0]);
	util_end_close(&p->e[1]);
}

void
util_pair_turn(struct pair *p)
{
	util_end_poll(&p->e[0]);
	util_end_poll(&p->e[1]);
}

cci_event_t *
util_pair_wait(struct pair *p, int i, cci_event_type_t type)
{
	cci_event_t *ev = NULL;

	return UTIL_UNTIL(p, (ev = util_end_take(&p->e[i], type)) != NULL) ? ev : NULL;
}

int
util_pair_sent(struct pair *p, int i, void **context)
{
	cci_event_t *ev = util_pair_wait(p, i, CCI_EVENT_SEND);
	int status;

	if (ev == NULL)
		UTIL_DIE("a send did not end");
	status = ev->send.status;
	if (context != NULL)
		*context = ev->send.context;
	util_return(ev);
	return status;
}

uint64_t
util_counter(const char *name)
{
	static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"device_get_list\"}\n";
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("PLX_RPC_SOCKET");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char answer[16384] = "", quoted[64];
	size_t len = 0;
	ssize_t n = 1;
	const char *at;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path != NULL ? path : "");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
		write(fd, ask, sizeof(ask) - 1) != (ssize_t)(sizeof(ask) - 1))
		UTIL_DIE("PLX_RPC_SOCKET: %s", to.sun_path);
	while (n > 0 && strchr(answer, '\n') == NULL) {
		n = read(fd, answer + len, sizeof(answer) - 1 - len);
		len += n > 0 ? n : 0;
		answer[len] = '\0';
	}
	close(fd);
	snprintf(quoted, sizeof(quoted), "\"%s\":", name);
	at = strstr(answer, quoted);
	if (at == NULL)
		UTIL_DIE("no %s in %s", name, answer);
	return strtoull(at + strlen(quoted), NULL, 10);
}
