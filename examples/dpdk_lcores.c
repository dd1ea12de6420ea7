/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * dpdk_lcores.c - a DPDK program whose lcores pass mbufs to each other, by UCP and by CCI
 *
 * usage: dpdk_lcores [EAL options]     two lcores, as --lcores 0@0,1@1
 *
 * The EAL and the lcores are the program's own, and the library takes none. Each lcore runs the turns
 * of its own worker and endpoint. The sender sends the data of mbufs. The receiver keeps each
 * message, where the library has put it, as an mbuf of its own, hands it on, and frees it.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <plx_mbuf.h>

#define N_MSGS 200u /* each way */
#define LEN    2048u

static struct rte_mempool *pool, *kept;
static ucp_worker_h workers[2]; /* of the sender, of the receiver */
static cci_endpoint_t *endpoints[2];
static char *uri;
static unsigned n_by_ucp, n_by_cci, n_wrong;
static atomic_bool over; /* the sender has all its events */

static void
check(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		rte_exit(EXIT_FAILURE, "%s: %s\n", what, ucs_status_string(status));
}

static void
check_cci(int status, const char *what)
{
	if (status != CCI_SUCCESS)
		rte_exit(EXIT_FAILURE, "%s: %s\n", what, cci_strerror(NULL, (enum cci_status)status));
}

/* What a real program would do with a packet; here it looks at the data and frees it. */
static void
hand_on(struct rte_mbuf *m, unsigned number)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	n_wrong += m->pkt_len != LEN || !RTE_MBUF_HAS_EXTBUF(m) || p[0] != (uint8_t)number || p[LEN - 1] != p[0];
	rte_pktmbuf_free(m);
}

static struct rte_mbuf *
empty(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (m == NULL)
		rte_exit(EXIT_FAILURE, "no mbufs\n");
	return m;
}

static ucs_status_t
on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
	const ucp_am_recv_param_t *param)
{
	struct rte_mbuf *m = empty();

	(void)arg, (void)header, (void)header_length;
	if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) ||
		plx_mbuf_keep_am(m, kept, workers[1], data, length) != 0)
		rte_exit(EXIT_FAILURE, "a message that can't be kept\n");
	hand_on(m, n_by_ucp++);
	return UCS_INPROGRESS; /* the data is the mbuf's */
}

static void
on_event(cci_event_t *event)
{
	if (event->type == CCI_EVENT_RECV) {
		struct rte_mbuf *m = empty();

		if (plx_mbuf_keep_event(m, kept, event) != 0)
			rte_exit(EXIT_FAILURE, "an event that can't be kept\n");
		hand_on(m, n_by_cci++);
		return; /* the event is the mbuf's */
	}
	if (event->type == CCI_EVENT_CONNECT_REQUEST)
		check_cci(cci_accept(event, NULL), "cci_accept");
	check_cci(cci_return_event(event), "cci_return_event");
}

/* It goes on after its last message: the acknowledgement goes with a later turn. */
static int
receiver(void *arg)
{
	(void)arg;
	while (n_by_ucp < N_MSGS || n_by_cci < N_MSGS || !atomic_load(&over)) {
		cci_event_t *event;

		ucp_worker_progress(workers[1]);
		if (cci_get_event(endpoints[1], &event) == CCI_SUCCESS)
			on_event(event);
	}
	return 0;
}

static struct rte_mbuf *
filled(unsigned number)
{
	struct rte_mbuf *m = empty();

	memset(rte_pktmbuf_append(m, LEN), (int)number, LEN);
	return m;
}

static void
send_by_ucp(ucp_ep_h ep, unsigned number)
{
	ucp_request_param_t param = {.op_attr_mask = 0};
	struct rte_mbuf *m = filled(number);
	ucs_status_ptr_t req = ucp_am_send_nbx(ep, 1, NULL, 0, rte_pktmbuf_mtod(m, void *), m->data_len, &param);
	ucs_status_t status = UCS_PTR_STATUS(req);

	if (UCS_PTR_IS_PTR(req)) {
		while ((status = ucp_request_check_status(req)) == UCS_INPROGRESS)
			ucp_worker_progress(workers[0]);
		ucp_request_free(req);
	}
	check(status, "ucp_am_send_nbx");
	rte_pktmbuf_free(m);
}

/* The next event of a type; its context and status are checked, and it is returned. */
static cci_connection_t *
await(enum cci_event_type type)
{
	cci_connection_t *connection = NULL;
	cci_event_t *event;

	while (cci_get_event(endpoints[0], &event) != CCI_SUCCESS)
		;
	if (event->type != type)
		rte_exit(EXIT_FAILURE, "%s\n", cci_event_type_str(event->type));
	if (type == CCI_EVENT_CONNECT) {
		check_cci((int)event->connect.status, "connecting");
		connection = event->connect.connection;
	} else {
		check_cci((int)event->send.status, "a send");
	}
	check_cci(cci_return_event(event), "cci_return_event");
	return connection;
}

static void
sender(ucp_ep_h ep)
{
	const struct timeval patience = {.tv_sec = 10};
	cci_connection_t *connection;

	check_cci(cci_connect(endpoints[0], uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &patience), "cci_connect");
	connection = await(CCI_EVENT_CONNECT);
	for (unsigned i = 0; i < N_MSGS; i++) {
		struct rte_mbuf *m = filled(i);

		check_cci(cci_send(connection, rte_pktmbuf_mtod(m, void *), m->data_len, NULL, 0), "cci_send");
		send_by_ucp(ep, i);
		(void)await(CCI_EVENT_SEND);
		rte_pktmbuf_free(m);
	}
	atomic_store(&over, true);
}

/* An ep from the sender's worker to the receiver's, whose handler keeps messages. */
static ucp_ep_h
open_ucp(ucp_context_h context)
{
	ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
		.id = 1, .cb = on_message, .flags = UCP_AM_FLAG_PERSISTENT_DATA};
	ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_worker_params_t params = {.field_mask = 0};
	ucp_address_t *address;
	size_t len;
	ucp_ep_h ep;

	for (unsigned i = 0; i < 2; i++)
		check(ucp_worker_create(context, &params, &workers[i]), "ucp_worker_create");
	check(ucp_worker_set_am_recv_handler(workers[1], &handler), "ucp_worker_set_am_recv_handler");
	check(ucp_worker_get_address(workers[1], &address, &len), "ucp_worker_get_address");
	ep_params.address = address;
	check(ucp_ep_create(workers[0], &ep_params, &ep), "ucp_ep_create");
	ucp_worker_release_address(workers[1], address);
	return ep;
}

int
main(int argc, char **argv)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
	ucp_context_h context;
	uint32_t caps;
	ucp_ep_h ep;

	if (rte_eal_init(argc, argv) < 0) /* before anything of the library */
		rte_exit(EXIT_FAILURE, "the EAL does not start, see above; --in-memory or --no-huge may help\n");
	if (rte_lcore_count() < 2)
		rte_exit(EXIT_FAILURE, "usage: dpdk_lcores [EAL options], for two lcores\n");
	pool = rte_pktmbuf_pool_create("mbufs", 1023, 32, 0, LEN + RTE_PKTMBUF_HEADROOM, (int)rte_socket_id());
	kept = plx_mbuf_kept_pool("kept", 255);
	if (pool == NULL || kept == NULL)
		rte_exit(EXIT_FAILURE, "no pools: %s\n", rte_strerror(rte_errno));
	check(ucp_init(&params, NULL, &context), "ucp_init");
	check_cci(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	ep = open_ucp(context);
	for (unsigned i = 0; i < 2; i++)
		check_cci(cci_create_endpoint(NULL, 0, &endpoints[i], NULL), "cci_create_endpoint");
	check_cci(cci_get_opt(endpoints[1], CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
	if (rte_eal_remote_launch(receiver, NULL, rte_get_next_lcore(-1, 1, 0)) != 0)
		rte_exit(EXIT_FAILURE, "the lcore is in use\n");
	sender(ep);
	rte_eal_mp_wait_lcore();
	printf("received as mbufs: %u by UCP, %u by CCI, %u wrong\n", n_by_ucp, n_by_cci, n_wrong);
	free(uri);
	ucp_ep_destroy(ep);
	for (unsigned i = 0; i < 2; i++) {
		ucp_worker_destroy(workers[i]);
		check_cci(cci_destroy_endpoint(endpoints[i]), "cci_destroy_endpoint");
	}
	ucp_cleanup(context);
	check_cci(cci_finalize(), "cci_finalize");
	printf("mbufs in use: %u, messages kept: %u\n", rte_mempool_in_use_count(pool), rte_mempool_in_use_count(kept));
	return rte_eal_cleanup() == 0 && n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
