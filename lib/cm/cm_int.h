/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * cm_int.h - what the files of lib/cm share
 */
#ifndef CM_INT_H
#define CM_INT_H

#include "plx_clock.h"
#include "plx_cm.h"

/* cm_sock.c */
int cm_add(struct plx_cm *cm, struct plx_cm_fd *f, uint32_t events);
int cm_addr_check(const struct sockaddr *addr, socklen_t len);
socklen_t cm_addr_len(const struct sockaddr *addr);
void cm_sock_free(struct plx_cm_sock *s);
void cm_sock_fail(struct plx_cm_sock *s, int err);
void cm_sock_event(struct plx_cm_fd *f, uint32_t events);
void cm_deadline(struct plx_cm_sock *s, uint32_t ms);
/* Set the timer to the next deadline. */
void cm_timer_set(struct plx_cm *cm);
/* Begin to connect by TCP; s is in no cm. */
int cm_sock_tcp(struct plx_cm_sock *s);
/* It begins to connect, with a deadline. */
int cm_sock_connects(struct plx_cm *cm, struct plx_cm_sock *s);
/* Send pending messages. */
int cm_sock_flush(struct plx_cm_sock *s);
/* The bytes read are a message, or its beginning; all: there are no more. */
void cm_sock_take(struct plx_cm_sock *s, bool all);

/* cm_dev.c */
/* Whether to use the devices' manager for an address. */
bool cm_dev_wanted(const struct plx_cm *cm, const struct sockaddr *addr);
/* Begin to connect; s is in no cm. Errors: -ENODEV and others. */
int cm_dev_connect(struct plx_cm *cm, struct plx_cm_sock *s);
void cm_dev_event(struct plx_cm_fd *f, uint32_t events);
/* Wait for closed connections whose last message has not arrived. */
void cm_dev_settle(struct plx_cm *cm);

/* cm_listen.c */
/* Poll all listeners again. */
void cm_listeners_wake(struct plx_cm *cm);

#endif
