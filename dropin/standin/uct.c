/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * uct.c - a libuct.so.0 for machines that have no UCX: there are no transports
 *
 * Programs that ask UCT what there is find nothing, and go on by UCP. No component means that none
 * of the other functions has anything to be called with.
 * Thread of all functions: any.
 */
#include <stddef.h>

#include <ucs/type/status.h>

typedef struct uct_component *uct_component_h;
typedef struct uct_md *uct_md_h;

ucs_status_t uct_query_components(uct_component_h **components_p, unsigned *num_components_p);
void uct_release_component_list(uct_component_h *components);
ucs_status_t uct_component_query(uct_component_h component, void *attr);
ucs_status_t uct_md_config_read(uct_component_h component, const char *env_prefix,
	const char *filename, void **config_p);
void uct_config_release(void *config);
ucs_status_t uct_md_open(uct_component_h component, const char *name, const void *config,
	uct_md_h *md_p);
void uct_md_close(uct_md_h md);
ucs_status_t uct_md_query_tl_resources(uct_md_h md, void **resources_p, unsigned *num_resources_p);
void uct_release_tl_resource_list(void *resources);

ucs_status_t
uct_query_components(uct_component_h **components_p, unsigned *num_components_p)
{
	*components_p = NULL;
	*num_components_p = 0;
	return UCS_OK;
}

void
uct_release_component_list(uct_component_h *components)
{
	(void)components;
}

ucs_status_t
uct_component_query(uct_component_h component, void *attr)
{
	(void)component;
	(void)attr;
	return UCS_ERR_INVALID_PARAM;
}

ucs_status_t
uct_md_config_read(uct_component_h component, const char *env_prefix, const char *filename,
	void **config_p)
{
	(void)component;
	(void)env_prefix;
	(void)filename;
	(void)config_p;
	return UCS_ERR_INVALID_PARAM;
}

void
uct_config_release(void *config)
{
	(void)config;
}

ucs_status_t
uct_md_open(uct_component_h component, const char *name, const void *config, uct_md_h *md_p)
{
	(void)component;
	(void)name;
	(void)config;
	(void)md_p;
	return UCS_ERR_NO_DEVICE;
}

void
uct_md_close(uct_md_h md)
{
	(void)md;
}

ucs_status_t
uct_md_query_tl_resources(uct_md_h md, void **resources_p, unsigned *num_resources_p)
{
	(void)md;
	(void)resources_p;
	(void)num_resources_p;
	return UCS_ERR_INVALID_PARAM;
}

void
uct_release_tl_resource_list(void *resources)
{
	(void)resources;
}
