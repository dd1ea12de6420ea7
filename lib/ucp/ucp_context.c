/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * ucp_context.c - library, contexts
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ucp_int.h"

#define VERSION_RELEASE 0

ucs_status_t
ucp_lib_query(ucp_lib_attr_t *attr)
{
	if (attr->field_mask & UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL)
		attr->max_thread_level = UCS_THREAD_MODE_MULTI;
	return UCS_OK;
}

void
ucp_get_version(unsigned *major_version, unsigned *minor_version, unsigned *release_number)
{
	*major_version = UCP_API_MAJOR;
	*minor_version = UCP_API_MINOR;
	*release_number = VERSION_RELEASE;
}

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)

const char *
ucp_get_version_string(void)
{
	return TEXT(UCP_API_MAJOR) "." TEXT(UCP_API_MINOR) "." TEXT(VERSION_RELEASE) " (pollux)";
}

/* Features without an implementation are refused here, so that programs fail early. */
#define FEATURES_REFUSED UCP_FEATURE_DEVICE

static ucs_status_t
context_fill(ucp_context_h c, const ucp_params_t *p)
{
	if (p->field_mask & UCP_PARAM_FIELD_FEATURES)
		c->features = p->features;
	if (c->features & FEATURES_REFUSED)
		return UCS_ERR_UNSUPPORTED;
	if (c->features == 0) /* as UCX does it */
		PLX_LOG(WARNING, ucp, "the context asks for no features: all operations will be refused");
	if (p->field_mask & UCP_PARAM_FIELD_REQUEST_SIZE)
		c->request_size = p->request_size;
	if (c->request_size > UINT32_MAX / 2)
		return UCS_ERR_INVALID_PARAM;
	if (p->field_mask & UCP_PARAM_FIELD_REQUEST_INIT)
		c->request_init = p->request_init;
	if (p->field_mask & UCP_PARAM_FIELD_REQUEST_CLEANUP)
		c->request_cleanup = p->request_cleanup;
	if (p->field_mask & UCP_PARAM_FIELD_TAG_SENDER_MASK)
		c->tag_sender_mask = p->tag_sender_mask;
	if (p->field_mask & UCP_PARAM_FIELD_MT_WORKERS_SHARED)
		c->mt_workers_shared = p->mt_workers_shared != 0;
	if ((p->field_mask & UCP_PARAM_FIELD_NAME) && p->name != NULL)
		snprintf(c->name, sizeof(c->name), "%s", p->name);
	else
		snprintf(c->name, sizeof(c->name), "pollux_%d", getpid());
	return UCS_OK;
}

/* It follows the last type, and types were added. */
static unsigned
mem_unknown(unsigned api_minor)
{
	return api_minor < 16 ? 5 : api_minor < 17 ? 6 : api_minor < 21 ? 9 : 10;
}

ucs_status_t
ucp_init_version(unsigned api_major_version, unsigned api_minor_version, const ucp_params_t *params,
	const ucp_config_t *config, ucp_context_h *context_p)
{
	ucp_context_h c;
	ucs_status_t status;
	int rc;

	if (api_major_version != UCP_API_MAJOR || api_minor_version > UCP_API_MINOR)
		PLX_LOG(WARNING, ucp, "the application wants API %u.%u, this library has %u.%u",
			api_major_version, api_minor_version, UCP_API_MAJOR, UCP_API_MINOR);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return UCS_ERR_NO_MEMORY;
	if (config != NULL)
		c->conf = config->conf;
	else
		plx_conf_now(&c->conf, NULL);
	c->refs = 1;
	c->forks = plx_forks;
	c->mem_unknown = mem_unknown(api_minor_version);
	status = context_fill(c, params);
	if (status == UCS_OK)
		status = ucp_tls_choose(&c->conf);
	if (status == UCS_OK) {
		rc = plx_init_get(&c->conf);
		status = rc == 0 ? ucp_tls_check(&c->conf) : ucp_status(rc);
		if (rc == 0 && status != UCS_OK)
			plx_init_put();
	}
	if (status != UCS_OK) {
		free(c);
		return status;
	}
	ucp_table_context(c);
	plx_conf_tell_unknown(&c->conf, config != NULL ? config->prefix : "");
	*context_p = c;
	return UCS_OK;
}

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

/* Called with the lock: the threads of a child may make workers at the same time. */
static int
own(ucp_context_h c)
{
	int rc;

	if (ucp_context_is_own(c))
		return 0;
	rc = plx_init_get(&c->conf);
	if (rc != 0)
		return rc;
	/* the application's reference; the parent's workers have none any more */
	atomic_store_explicit(&c->refs, 1, memory_order_relaxed);
	/* pairs with the acquire in ucp_context_is_own(): the count is that of before */
	atomic_store_explicit(&c->forks, plx_forks, memory_order_release);
	return 0;
}

ucs_status_t
ucp_context_own(ucp_context_h c)
{
	int rc;

	if (likely(ucp_context_is_own(c)))
		return UCS_OK;
	pthread_mutex_lock(&own_lock);
	rc = own(c);
	pthread_mutex_unlock(&own_lock);
	return ucp_status(rc);
}

static void
after_fork_in_child(void)
{
	pthread_mutex_init(&own_lock, NULL);
}

RTE_INIT(ucp_context_watch_forks)
{
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

void
ucp_context_put(ucp_context_h c)
{
	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	plx_init_put();
	free(c);
}

void
ucp_cleanup(ucp_context_h context)
{
	if (context != NULL && ucp_context_is_own(context))
		ucp_context_put(context);
}

ucs_status_t
ucp_context_query(ucp_context_h c, ucp_context_attr_t *attr)
{
	if (attr->field_mask & UCP_ATTR_FIELD_REQUEST_SIZE)
		attr->request_size = PLX_REQ_SIZE;
	if (attr->field_mask & UCP_ATTR_FIELD_THREAD_MODE)
		attr->thread_mode =
			c->mt_workers_shared ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
	if (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES)
		attr->memory_types = UCS_MEMORY_TYPES_CPU_ACCESSIBLE;
	if (attr->field_mask & UCP_ATTR_FIELD_NAME)
		snprintf(attr->name, sizeof(attr->name), "%s", c->name);
	if (attr->field_mask & UCP_ATTR_FIELD_DEVICE_COUNTER_SIZE)
		attr->device_counter_size = 0;
	return UCS_OK;
}

void
ucp_context_print_info(const ucp_context_h context, FILE *stream)
{
	const char *list = plx_conf_str(&context->conf, PLX_CONF_DEVICES);
	char name[PLX_CONF_STR_MAX];
	unsigned n = 0;

	fprintf(stream, "#\n# UCP context\n#\n");
	while (plx_conf_next(&list, name, sizeof(name))) {
		struct plx_dev_port port;

		/* Programs read the form of this line. */
		for (unsigned i = 0; plx_dev_look(name, &context->conf, i, &port) == 0; i++, n++)
			fprintf(stream, "#      resource %-2u :  md %-2u dev %-2u flags -- %s/%s\n", n, n,
				n, name, port.name[0] != '\0' ? port.name : "memory");
	}
	fprintf(stream, "#\n");
}
