/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cm_int.h - what the files of lib/cm share
 */
#ifndef CM_INT_H
#define CM_INT_H

#include "plx_cm.h"

int cm_add(struct plx_cm *cm, struct plx_cm_fd *f, uint32_t events);
uint64_t cm_now_ns(void);
int cm_addr_check(const struct sockaddr *addr, socklen_t len);

/* A socket of a TCP descriptor, or of a connection of the devices' manager; takes either, also
 * when it fails. */
int cm_sock_new(struct plx_cm *cm, int fd, struct plx_dev_cm_id *id, struct plx_cm_sock **out);
void cm_sock_free(struct plx_cm_sock *s);
void cm_sock_fail(struct plx_cm_sock *s, int err);
void cm_deadline(struct plx_cm_sock *s, uint32_t ms);
/* Let the timer ring when something is due. */
void cm_timer_set(struct plx_cm *cm);

/* cm_listen.c */
/* Look at all listeners again. */
void cm_listeners_wake(struct plx_cm *cm);

/* Begin to connect by TCP; s is in no cm. */
int cm_sock_tcp(struct plx_cm_sock *s);
/* Now it connects, for so long as it may. */
int cm_sock_connects(struct plx_cm *cm, struct plx_cm_sock *s);
/* Send what waits. */
int cm_sock_flush(struct plx_cm_sock *s);
/* What has been read is a message, or its begin; all: there is no more of it. */
void cm_sock_take(struct plx_cm_sock *s, bool all);

/* Somebody has connected; takes fd or id, as cm_sock_new(). */
void cm_accepted(struct plx_cm_listener *l, int fd, struct plx_dev_cm_id *id);

/* cm_dev.c */

/* Whether to use the devices' manager for an address. */
bool cm_dev_wanted(const struct plx_cm *cm, const struct sockaddr *addr);
/* Begin to connect; s is in no cm. Errors: -ENODEV and others. */
int cm_dev_connect(struct plx_cm *cm, struct plx_cm_sock *s);
/* @return whether a client that could not connect goes on by TCP */
bool cm_dev_falls(struct plx_cm_sock *s);
void cm_dev_event(struct plx_cm_fd *f, uint32_t events);
/* @return whether it stays for a while, with nobody's knowledge, until what was sent has arrived */
bool cm_dev_lingers(struct plx_cm_sock *s);
/* Wait for those. */
void cm_dev_settle(struct plx_cm *cm);
int cm_dev_listen(struct plx_cm_listener *l, const struct sockaddr *addr);
void cm_dev_unlisten(struct plx_cm_listener *l);

#endif
