/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cci_int.h - the CCI face: its objects, and between its files
 *
 * Design notes
 * An endpoint is a worker, a connection a channel of it. The face checks arguments,
 * finds the core's object, calls one plx_ function and maps the result. What it adds
 * is API-shaped: the queue of events, and the layout of operations.
 *
 * An endpoint has a lock, taken by every call: it orders the application's threads
 * among each other. A reactor never takes it. There are no callbacks, so it is never
 * taken twice.
 */
#ifndef CCI_INT_H
#define CCI_INT_H

#include <stdbool.h>
#include <sys/queue.h>

#include <rte_common.h>

#include <cci.h>

#include "plx_init.h"
#include "plx_worker.h"

PLX_LOG_DECLARE(cci);

#define CCI_URI_MAX	192 /* with the terminating byte */
#define CCI_SERVICE_MAX 64
#define CCI_INI_DEVS	32  /* sections of a file */
#define CCI_INI_KEYS	32  /* lines of a section */
#define CCI_INI_LINE	1024
#define CCI_ERR_TEXT	160 /* an error message about a file */
#define CCI_MR_HASH	64  /* lists over which an endpoint's registrations are spread */
#define CCI_COUNT_MAX	(1u << 20) /* the most send or receive buffers */

/** The two kinds of handle of an option. */
#define CCI_MAGIC_EP   0x45494343u
#define CCI_MAGIC_CONN 0x43494343u

/* --- devices --- */

/** A line of a section. */
struct cci_ini_key {
	char *text; /* "key=value" */
	unsigned line;
};

struct cci_ini_dev {
	char *name;
	unsigned line, n_keys;
	struct cci_ini_key keys[CCI_INI_KEYS];
};

/** The contents of a configuration file. */
struct cci_ini {
	unsigned n_devs;
	struct cci_ini_dev devs[CCI_INI_DEVS];
};

/**
 * Read the text of a file.
 * @param err CCI_ERR_TEXT bytes, set to the mistake and its line
 * @return 0, and cci_ini_free() is due; -EINVAL, -ENOMEM
 */
int cci_ini_parse(const char *text, size_t len, struct cci_ini *ini, char *err);
void cci_ini_free(struct cci_ini *ini);

struct cci_dev {
	struct cci_device pub;
	const char *driver; /* the core's name of the device */
	int priority;
	bool is_default;
	unsigned order; /* in the file */
	char *name;
	const char **argv;
	char info[128];
};

/** Find all devices. @return a CCI status */
int cci_devices_open(void);
void cci_devices_close(void);
/** In a forked child: they belong to the parent. The endpoints there keep reading them. */
void cci_devices_forget(void);
/** The settings of a device's workers: the process's, and those of its section. */
void cci_device_conf(const struct cci_dev *d, struct plx_conf *conf);
/** @return the device, or for NULL the default one; NULL: there is none */
const struct cci_dev *cci_device_find(cci_device_t *device);

/* --- endpoints --- */

struct cci_ep {
	struct cci_endpoint pub;
	uint32_t magic;
	struct plx_lock lock;
	struct plx_worker *core;
	struct plx_chan_items ready; /* events that were not taken yet */
	uint32_t n_sends, sends_max; /* operations in flight */
	uint32_t recvs_max;
	bool has_fd;
	bool plain; /* without a descriptor, and only its calls run turns */
	bool failed; /* its device has, and the application was notified */
	bool awake; /* the descriptor is readable, whatever comes */
	uint32_t n_looks; /* empty looks at the armed worker */
	struct plx_name service; /* its address, if it has one */
	struct plx_pool conns;
	LIST_HEAD(, cci_mr) mrs[CCI_MR_HASH];
	LIST_HEAD(, cci_conn) joined; /* to groups */
	uint32_t send_timeout_us, keepalive_us;
	uint32_t keepalive_epoch; /* counts settings for all connections */
	LIST_ENTRY(cci_ep) link; /* of the process's */
	char uri[CCI_URI_MAX];
};

struct cci_conn {
	struct cci_connection pub;
	uint32_t magic;
	uint32_t send_timeout_us;
	uint32_t keepalive_us, keepalive_epoch; /* its own, if the epoch is the endpoint's */
	struct plx_name member; /* of a group without the device's help */
	struct cci_ep *ep;
	LIST_ENTRY(cci_conn) link; /* of those that are a member */
	struct plx_chan chan; /* its memory stays a channel's while the endpoint lives */
};

/** A registration. */
struct cci_mr {
	struct cci_rma_handle pub;
	struct plx_region_key key;
	uint8_t *base;
	uint64_t len;
	uint32_t n_ops; /* RMA in flight from or to it */
	LIST_ENTRY(cci_mr) link;
};

static inline struct cci_ep *
cci_ep_of(cci_endpoint_t *e)
{
	return container_of((struct cci_endpoint *)(uintptr_t)e, struct cci_ep, pub);
}

static inline struct cci_conn *
cci_conn_of(cci_connection_t *c)
{
	return container_of((struct cci_connection *)(uintptr_t)c, struct cci_conn, pub);
}

static inline struct cci_conn *
cci_conn_of_chan(struct plx_chan *c)
{
	return container_of(c, struct cci_conn, chan);
}

/** @return the core's name of the device. */
static inline const char *
cci_ep_driver(const struct cci_ep *ep)
{
	return container_of((struct cci_device *)(uintptr_t)ep->pub.device, struct cci_dev, pub)->driver;
}

static inline void
cci_lock(struct cci_ep *ep)
{
	plx_lock_take(&ep->lock);
}

static inline void
cci_unlock(struct cci_ep *ep)
{
	plx_lock_drop(&ep->lock);
}

/** The CCI status of 0 or -errno. */
int cci_status(int err);

/** Text for an address of a device's worker. @return 0, or -EMSGSIZE */
int cci_uri_format(const char *driver, const struct plx_worker *w, char *uri);

/** @return whether this can be a service. */
bool cci_service_is_good(const char *service);

/**
 * Publish a service, until *fd is closed.
 * @param uri out: CCI_URI_MAX bytes
 * @return 0; -EBUSY it is taken; or another -errno
 */
int cci_service_publish(const char *driver, const char *service, const struct plx_worker *w,
	char *uri, struct plx_name *out);

/** The address that a URI names for this driver. @return 0; -EINVAL; -ECONNREFUSED no such service */
int cci_uri_parse(const char *uri, const char *driver, struct plx_wire_addr *addr);

/** @return the name of the group that a URI names for this driver, or NULL. */
const char *cci_uri_group(const char *uri, const char *driver);

/** Make c a member of a group; its CONNECT event follows. @return 0 or -errno */
int cci_group_join(struct cci_conn *c, const char *uri);

/** Stop publishing. No effect on a connection without a group. */
void cci_group_leave(struct cci_conn *c);

/* --- events --- */

/** For the core: an item has come. Called with the lock. */
void cci_deliver(struct plx_chans *cs, struct plx_chan_item *item);

/** @return the union in an item. */
static inline union cci_event *
cci_event_in(struct plx_chan_item *item)
{
	_Static_assert(sizeof(union cci_event) <= sizeof(item->event), "an event fits in an item");
	return (union cci_event *)(void *)item->event;
}

static inline struct plx_chan_item *
cci_item_of(cci_event_t *event)
{
	return container_of((uint64_t(*)[3])(uintptr_t)event, struct plx_chan_item, event);
}

/** Return an item to its owner. */
void cci_recycle(struct cci_ep *ep, struct plx_chan_item *item);

/** @return whether its channel has ended. */
static inline bool
cci_is_stale(const struct plx_chan_item *item)
{
	return item->chan != NULL && item->chan_id != item->chan->id;
}

/** @return the next valid item, or NULL. Called with the lock. */
static inline struct plx_chan_item *
cci_next_item(struct cci_ep *ep)
{
	struct plx_chan_item *item;

	while ((item = STAILQ_FIRST(&ep->ready)) != NULL) {
		STAILQ_REMOVE_HEAD(&ep->ready, link);
		if (likely(!cci_is_stale(item)))
			break;
		cci_recycle(ep, item);
	}
	return item;
}

/**
 * Process arrivals and completions, for a bounded number of turns. Called with the lock.
 * @param left stop when this is 0; NULL: when nothing comes
 */
void cci_hear(struct cci_ep *ep, const uint32_t *left);

/* ---- the OS handle; called with the lock ---- */

/** Make it readable. */
void cci_wake(struct cci_ep *ep);

/** Run turns; @return an item, or NULL and later events make the handle readable. */
struct plx_chan_item *cci_next_item_or_arm(struct cci_ep *ep);

/** An operation was started or delivered that an armed worker may not report. */
static inline void
cci_started(struct cci_ep *ep)
{
	if (unlikely(ep->has_fd && !ep->awake))
		cci_wake(ep);
}

/** Allocate an operation, if one may begin: -ENOBUFS, -ENOMEM else. Called with the lock. */
int cci_op_get(struct cci_conn *c, const void *context, int flags, struct plx_chan_op **out);

/** Start it, and with CCI_FLAG_BLOCKING wait for it. Called with the lock. @return a status */
int cci_op_run(struct cci_conn *c, struct plx_chan_op *op, int flags);

/** Put a message of len bytes in op; with flags as cci_send(). @return 0 or -ENOMEM */
int cci_op_data(struct cci_ep *ep, struct plx_chan_op *op, const struct iovec *iov, uint32_t n,
	uint32_t len, int flags);

/* --- registrations --- */

/** An operation between a local registration and a remote one is complete. */
static inline void
cci_mr_drop(struct plx_chan_item *item)
{
	((struct cci_mr *)(uintptr_t)item->event[0])->n_ops--;
}

/** Free all of an endpoint. */
void cci_mrs_free(struct cci_ep *ep);

/**
 * Run a turn of the other endpoints of the process that no thread is using. Called without
 * a lock.
 * @param all_of_them also of those that another thread uses, whose lock becomes slower by
 *   that
 * @return the number of events
 */
unsigned cci_others_turn(const struct cci_ep *self, bool all_of_them);

/** The endpoints of the process. */
void cci_all_add(struct cci_ep *ep);
void cci_all_remove(struct cci_ep *ep);
/** @return one of them, which is removed, or NULL. */
struct cci_ep *cci_all_take(void);

/** Destroy an endpoint; and all that there are. */
void cci_ep_free(struct cci_ep *ep);
void cci_endpoints_close(void);
/** In a forked child: they belong to the parent. */
void cci_endpoints_forget(void);

#endif
