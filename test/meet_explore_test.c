/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * meet_explore_test.c - how processes introduce themselves, in every order of events
 *
 * Design notes
 * A model, step by step, of what lib/mem/meet.c (a process offers, replaces, withdraws, and a thread of it
 * answers), lib/mem/ask.c (another one asks and proves) and drivers/shm/shm_seg.c (which asks again, connects, or
 * says that the other has gone) do. A step is what no other thread or process can come between: one call of the
 * system, or what is done under a lock. Two processes take steps in every order, with up to three faults at any time:
 * death, a fork, another user, no descriptor, no memory, a reply that can't be sent, a silent client, a lie.
 *
 * All states that can be reached are made, and each is looked at. Some properties are seen in a single step, as
 * it is taken (enum wrong). One is about the future: from each state there has to be a way, by steps that are no
 * faults, to one where every asker has an answer; else somebody may wait for ever.
 *
 * A mistake that is planted in the model has to be found, and for its own reason. Some are mistakes that the code once
 * had.
 *
 * Not in the model: the users that the answering side meets, and a listening queue that is full, as either ends in
 * one step (EPERM, EAGAIN).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore_states.h"
#include "plx_unit.h"

/* -- what there is -- */

enum up { UP_NOT, UP_NAMED /* others see that it lives */, UP_LISTENS };
enum child { CHILD_NONE, CHILD_FORKED /* has copies of all sockets */, CHILD_CLEAN };
enum content { FD_CLOSED, FD_FIRST, FD_OTHER /* the number belongs to another file by now */ };

/* The process that a process serves at the moment. */
enum thread { T_POLLS, T_FOUND /* only where the lock is let go too early */ };

enum link_state { LINK_NONE, LINK_QUEUED, LINK_ACCEPTED, LINK_ENDED };
enum reply { REPLY_NONE, REPLY_FDS, REPLY_NO_SUCH, REPLY_AGAIN };

enum asking {
	ASK_NOTHING, /* knows no address yet, or is to ask anew */
	ASK_LINKED,
	ASK_ASKED,
	ASK_UP,	     /* the other's segment is mapped */
	ASK_GONE,    /* and it says so */
	ASK_REFUSED, /* as the other is of a user who is not met */
};

/* The one connection of an asker to the other process; in it lies one question, or one reply. */
struct link {
	uint8_t state;
	uint8_t probe;	    /* only to learn who the other is by now */
	uint8_t asks;	    /* a question lies there: for this segment */
	uint8_t reply;
	uint8_t of;	    /* segment that the reply is about */
	uint8_t content;    /* of the descriptor in it */
	uint8_t lie;	    /* it is no sealed memory */
	uint8_t bell;	    /* comes with it */
	uint8_t user;	    /* of the other, as the kernel says here; in the end, of the reply */
	uint8_t met;	    /* the other could be met when we connected, and when it answered */
	uint8_t leaked;	    /* a child has a copy of the accepted one, */
	uint8_t hung_up;    /* which the server has closed */
};

#define LIED 3 /* a segment that was not asked for */

#define ASKS_MAX 2 /* of one that shows a bell and sends none */

struct process {
	uint8_t dead;
	uint8_t user;	   /* 0: is met, 1: is not */
	uint8_t listens_as;
	uint8_t up, child;
	uint8_t copies;	   /* what sockets of it the child keeps alive, enum up */
	uint8_t script;	   /* how far its main thread is */
	uint8_t offered;   /* segments, a bit each */
	uint8_t told;	   /* whose address the other knows */
	uint8_t withdrawn; /* nobody is to be connected any more */
	uint8_t bell_offered, bell_shown;
	uint8_t fd;	   /* content of the number that the first segment has */
	uint8_t no_fds;
	uint8_t thread;
	/* as an asker */
	uint8_t asking;
	uint8_t wants;	   /* segment */
	uint8_t n_asks;	   /* for a bell */
	uint8_t sure;	   /* the probe has said that it is met */
	struct link link;
};

struct state {
	struct process p[2];
	uint8_t faults;
};

enum wrong {
	WRONG_NOTHING,
	WRONG_UNPROVEN,	 /* what was not proven is used */
	WRONG_HANDED,	 /* what is not offered is handed over */
	WRONG_ANSWER,	 /* the answer to another question */
	WRONG_OLD,	 /* a withdrawn segment taken for a new one */
	WRONG_GONE,	 /* gone is said of one that lives and offers */
	WRONG_REFUSED,	 /* refused is one that may be met */
	WRONG_MET,	 /* met is one that may not be */
	WRONG_BELL,	 /* one that sleeps can't be woken */
	WRONG_OFFER,	 /* one that lives can't offer */
	WRONG_FOR_EVER,	 /* an asker may wait for ever */
};

static const char *const wrongs[] = {"nothing", "what was not proven is used", "what is not offered is handed over",
	"an answer to another question", "a withdrawn segment is taken for a new one",
	"gone is said of a process that offers", "a process that may be met is refused",
	"a process that may not be met is met", "a bell is missed",
	"a process can't offer", "an asker waits for ever"};

/* -- the planted mistakes -- */

enum bug {
	BUG_NONE,
	BUG_NO_PROOF,	       /* what came is mapped as it is */
	BUG_NO_LOCK,	       /* the reply is sent when the lock has been let go */
	BUG_CLOSED_FIRST,      /* the descriptor is closed before it is withdrawn */
	BUG_ONE_LINK,	       /* a second question on the connection of the first */
	BUG_NO_NAME_CHECK,     /* a segment is not asked for its number */
	BUG_TOLD_EARLY,	       /* an address goes out before the offer */
	BUG_RESET_IS_GONE,     /* who closes without a reply has gone */
	BUG_UNSENT_IS_SILENCE, /* a reply that can't be sent is the end, and the asker takes that for gone */
	BUG_NO_MEMORY_IS_NONE, /* who can't remember the asker says that there is no such segment */
	BUG_SCARCE_IS_GONE,    /* an asker that is out of descriptors gives up */
	BUG_SCARCE_IS_DEAF,    /* who was out of descriptors does not look again */
	BUG_LISTENER_ONLY,     /* only the user of the listener counts */
	BUG_NO_REPLY_USER,     /* the user of the reply does not */
	BUG_BELL_LATE,	       /* the bell is shown before it is offered */
	BUG_BELL_ONCE,	       /* who got none is not asked again */
	BUG_CHILD_LISTENS,     /* a forked child keeps what it has inherited */
	BUG_CLOSE_ONLY,	       /* a connection is closed and not shut down; a child may have a copy */
	BUG_NAME_IS_TAKEN,     /* a name that a child has for a moment is an error */
	BUG_ASKER_ANSWERS,     /* the thread that asks is the one that answers */
	BUG_UNHEARD_IS_ERROR,  /* who was ended before it asked gives up */
};

static enum bug bug;

/* -- scenarios -- */

enum fault {
	F_DEATH = 1,
	F_FORK = 2,
	F_USER = 4,
	F_SCARCE = 8,	/* the one that answers */
	F_MEMORY = 16,
	F_UNSENT = 32,
	F_SILENCE = 64, /* a client is taken for silent */
	F_LIE = 128,
	F_ASKER = 256,	/* out of descriptors, the one that asks */
};

struct scenario {
	const char *name;
	unsigned faults;
	bool both;	/* ask */
	bool withdraws;	/* and offers another segment */
	bool keeps;	/* something else on offer meanwhile */
	uint8_t user;	/* of the answering one when it begins to listen */
	unsigned n_faults;
};

static const struct scenario *scene;

/* -- steps -- */

enum step {
	/* the main thread */
	STEP_MAIN,
	/* the thread that answers */
	STEP_USER_SEEN,
	STEP_ACCEPT,
	STEP_LOOK_UP,
	STEP_ANSWER,
	/* an asker */
	STEP_ASK,
	STEP_QUESTION,
	STEP_POLL,
	STEP_LOOK_GONE,
	STEP_ANEW,
	/* what goes by by itself */
	STEP_CHILD,
	STEP_FDS_AGAIN,
	/* faults */
	STEP_FAULTS,
	STEP_DIE = STEP_FAULTS,
	STEP_FORK,
	STEP_USER,
	STEP_NO_FDS,
	STEP_UNSENT,
	STEP_NO_MEMORY,
	STEP_SILENT,
	STEP_LIE,
	STEP_LIE_OTHER,
	STEP_NO_FDS_ASKER,
	STEPS,
};

static const char *const mains[] = {"names itself", "listens", "offers", "tells its address", "offers a bell",
	"shows it", "says that it closes", "withdraws", "stops", "closes the descriptor", "uses its number anew",
	"names itself", "listens", "offers another", "tells its address"};
static const char *const steps[] = {"", "sees its user", "accepts", "looks up", "answers", "connects", "asks",
	"polls", "looks whether the other has gone", "asks for the new one", "child closes", "has descriptors", "dies",
	"forks", "is another user", "has no descriptor", "can't send its reply", "has no memory",
	"drops a silent client", "sends a lie", "sends another segment", "has no descriptor for an answer"};

static enum wrong found; /* in the step being taken */

static void
is_wrong(enum wrong w)
{
	if (found == WRONG_NOTHING)
		found = w;
}

enum main_script {
	MAIN_NAME,
	MAIN_LISTEN,
	MAIN_OFFER,
	MAIN_TELL,
	MAIN_BELL,
	MAIN_BELL_SHOW,
	MAIN_CLOSED,
	MAIN_WITHDRAW,
	MAIN_STOP,
	MAIN_CLOSE,
	MAIN_REUSE,
	MAIN_NAME_2,
	MAIN_LISTEN_2,
	MAIN_OFFER_2,
	MAIN_TELL_2,
	MAIN_END,
};

static uint8_t
bit(unsigned seg)
{
	return (uint8_t)(1u << seg);
}

/* The server's end goes: the asker sees it unless somebody has a copy. */
static void
link_end(struct link *l, bool shut_down)
{
	if (l->state == LINK_NONE)
		return;
	l->hung_up = 1;
	if (l->leaked && !shut_down)
		return;
	l->state = LINK_ENDED;
	l->asks = 0;
}

static void
link_drop(struct process *p)
{
	memset(&p->link, 0, sizeof(p->link));
}

/* Those in the queue of a socket are ended with its last copy. */
static void
queue_lost(const struct process *q, struct link *l)
{
	if (l->state == LINK_QUEUED && (q->child != CHILD_FORKED || q->copies == UP_NOT))
		link_end(l, true);
}

static bool
takes_turns(const struct process *q)
{
	return !q->dead && q->up == UP_LISTENS;
}

/* It joins the thread, which ends what it has begun. */
static bool
stop_step(struct process *q, struct process *asker)
{
	if (q->thread == T_FOUND)
		return false;
	q->up = UP_NOT;
	if (asker->link.state == LINK_ACCEPTED)
		link_end(&asker->link, bug != BUG_CLOSE_ONLY);
	queue_lost(q, &asker->link);
	if (bug != BUG_CLOSE_ONLY) /* who is shut down listens no more */
		q->copies = RTE_MIN(q->copies, UP_NAMED);
	q->thread = T_POLLS;
	q->script++;
	return true;
}

static bool
main_step(struct process *q, struct process *asker)
{
	uint8_t at = q->script;

	if (q->dead || at == MAIN_END || (!scene->withdraws && at > MAIN_BELL_SHOW))
		return false;
	if (at == MAIN_NAME_2 && q->up == UP_NOT && q->child == CHILD_FORKED && q->copies != UP_NOT) {
		if (bug == BUG_NAME_IS_TAKEN)
			is_wrong(WRONG_OFFER);
		return bug == BUG_NAME_IS_TAKEN; /* else it tries again */
	}
	switch (bug == BUG_TOLD_EARLY && at <= MAIN_TELL ? (at + MAIN_TELL) % (MAIN_TELL + 1) : at) {
	case MAIN_NAME:
	case MAIN_NAME_2:
		if (q->up != UP_NOT)
			break;
		q->up = UP_NAMED;
		break;
	case MAIN_LISTEN:
	case MAIN_LISTEN_2:
		if (q->up == UP_LISTENS)
			break;
		q->up = UP_LISTENS;
		q->listens_as = q->user;
		q->thread = T_POLLS;
		break;
	case MAIN_OFFER:
		q->offered |= bit(1);
		q->fd = FD_FIRST;
		break;
	case MAIN_TELL:
		q->told |= bit(1);
		q->listens_as = q->up == UP_LISTENS ? q->user : q->listens_as; /* plx_meet_refresh() */
		break;
	case MAIN_BELL:
		*(bug == BUG_BELL_LATE ? &q->bell_shown : &q->bell_offered) = 1;
		break;
	case MAIN_BELL_SHOW:
		q->bell_offered = q->bell_shown = 1;
		break;
	case MAIN_CLOSED:
		q->withdrawn |= bit(1);
		if (bug == BUG_CLOSED_FIRST)
			q->fd = FD_CLOSED;
		break;
	case MAIN_WITHDRAW:
		q->offered &= (uint8_t)~bit(1);
		break;
	case MAIN_STOP:
		if (!scene->keeps)
			return stop_step(q, asker);
		break;
	case MAIN_CLOSE:
		q->fd = FD_CLOSED;
		break;
	case MAIN_REUSE:
		q->fd = FD_OTHER;
		break;
	case MAIN_OFFER_2:
		q->offered |= bit(2);
		break;
	case MAIN_TELL_2:
		q->told |= bit(2);
		break;
	}
	q->script++;
	return true;
}

/* Whoever answers can do so now. */
static bool
serves(const struct process *q)
{
	if (bug == BUG_ASKER_ANSWERS && q->asking == ASK_ASKED && q->link.reply == REPLY_NONE &&
		q->link.state != LINK_ENDED)
		return false;
	return takes_turns(q);
}

static bool
accept_step(const struct process *q, struct process *asker)
{
	struct link *l = &asker->link;

	if (!serves(q) || l->state != LINK_QUEUED || q->no_fds || q->thread != T_POLLS)
		return false;
	l->state = LINK_ACCEPTED;
	return true;
}

static void
reply(const struct process *q, struct link *l, enum reply what, unsigned seg)
{
	l->reply = what;
	l->of = (uint8_t)seg;
	l->user = q->user;
	l->met &= q->user == 0;
	l->content = seg == 1 ? q->fd : FD_FIRST;
	l->bell = seg == 1 ? q->bell_offered : 1;
	if (what == REPLY_FDS && l->content != FD_FIRST)
		is_wrong(WRONG_HANDED);
}

static bool
may_serve(const struct process *q, const struct process *asker)
{
	return serves(q) && asker->link.state == LINK_ACCEPTED && !asker->link.hung_up && q->listens_as == q->user;
}

static bool
has_question(const struct process *q, const struct process *asker)
{
	return may_serve(q, asker) && asker->link.asks != 0;
}

static void
hang_up(struct process *q, struct link *l)
{
	link_end(l, bug != BUG_CLOSE_ONLY);
	q->thread = T_POLLS;
}

static bool
look_up_step(struct process *q, struct process *asker)
{
	if (bug != BUG_NO_LOCK || !has_question(q, asker) || q->thread != T_POLLS ||
		(q->offered & bit(asker->link.asks)) == 0)
		return false;
	q->thread = T_FOUND;
	return true;
}

static bool
answer_step(struct process *q, struct process *asker)
{
	struct link *l = &asker->link;
	unsigned seg = l->asks;

	if (!has_question(q, asker))
		return false;
	if (bug == BUG_NO_LOCK && q->thread != T_FOUND && (q->offered & bit(seg)) != 0)
		return false;
	if (q->thread == T_FOUND || (q->offered & bit(seg)) != 0)
		reply(q, l, REPLY_FDS, seg);
	else
		reply(q, l, REPLY_NO_SUCH, seg);
	hang_up(q, l);
	return true;
}

/* One of the steps that keep it from answering as it would. */
static bool
bad_answer(enum step s, struct process *q, struct process *asker)
{
	struct link *l = &asker->link;

	if (s == STEP_SILENT ? !may_serve(q, asker) || l->asks != 0 : !has_question(q, asker) ||
			(q->offered & bit(l->asks)) == 0)
		return false;
	if (s == STEP_UNSENT && bug != BUG_UNSENT_IS_SILENCE)
		reply(q, l, REPLY_AGAIN, l->asks);
	if (s == STEP_NO_MEMORY)
		reply(q, l, bug == BUG_NO_MEMORY_IS_NONE ? REPLY_NO_SUCH : REPLY_AGAIN, l->asks);
	if (s == STEP_LIE || s == STEP_LIE_OTHER) {
		l->reply = REPLY_FDS;
		l->user = q->user;
		l->of = s == STEP_LIE ? l->asks : LIED;
		l->lie = s == STEP_LIE;
		l->content = FD_FIRST;
		l->bell = 1;
	}
	hang_up(q, l);
	return true;
}

/* -- the asker -- */

static void
says_gone(struct process *p, const struct process *q)
{
	if (!q->dead && (q->told & bit(p->wants)) != 0 && (q->withdrawn & bit(p->wants)) == 0)
		is_wrong(WRONG_GONE);
	p->asking = ASK_GONE;
	link_drop(p);
}

static void
ask_again(struct process *p)
{
	p->asking = ASK_NOTHING;
	link_drop(p);
}

static void
refuses(struct process *p, const struct process *q)
{
	if (p->link.met && q->user == 0)
		is_wrong(WRONG_REFUSED);
	p->asking = ASK_REFUSED;
	link_drop(p);
}

/* Does its socket stand there? */
static bool
name_is_there(const struct process *q, enum up at_least)
{
	return q->up >= at_least || (q->child == CHILD_FORKED && q->copies >= at_least);
}

static bool
ask_step(struct process *p, const struct process *q)
{
	struct link *l = &p->link;

	if (p->dead || p->asking != ASK_NOTHING || q->told == 0)
		return false;
	p->wants = p->wants == 0 ? 1 : p->wants;
	if (!name_is_there(q, UP_LISTENS)) {
		says_gone(p, q);
		return true;
	}
	link_drop(p);
	l->state = LINK_QUEUED;
	l->met = q->user == 0;
	l->user = q->listens_as;
	p->asking = ASK_LINKED;
	if (l->user != 0 && !p->sure) {
		if (bug == BUG_LISTENER_ONLY)
			refuses(p, q);
		else
			l->probe = 1;
	}
	return true;
}

static bool
question_step(struct process *p, const struct process *q)
{
	if (p->dead || p->asking != ASK_LINKED)
		return false;
	p->asking = ASK_ASKED;
	if (p->link.state == LINK_ENDED && bug == BUG_UNHEARD_IS_ERROR)
		says_gone(p, q);
	else if (p->link.state != LINK_ENDED)
		p->link.asks = p->wants;
	return true;
}

/* Without a reply: */
static void
was_reset(struct process *p, const struct process *q)
{
	if (bug == BUG_RESET_IS_GONE || bug == BUG_UNSENT_IS_SILENCE || !name_is_there(q, UP_NAMED))
		says_gone(p, q);
	else
		ask_again(p);
}

/* What answer_take() does with descriptors. */
static void
takes(struct process *p, const struct process *q)
{
	struct link l = p->link;

	if (l.lie && bug != BUG_NO_PROOF) {
		p->asking = ASK_GONE; /* it is none of ours */
		link_drop(p);
		return;
	}
	if (l.lie)
		is_wrong(WRONG_UNPROVEN);
	if (l.of != p->wants && bug != BUG_NO_NAME_CHECK) {
		p->asking = ASK_GONE;
		link_drop(p);
		return;
	}
	if (l.of != p->wants)
		is_wrong(WRONG_OLD);
	if ((q->withdrawn & bit(l.of)) != 0) { /* its closed word */
		says_gone(p, q);
		return;
	}
	if (p->wants == 1 && q->bell_shown && !l.bell) {
		if (bug == BUG_BELL_ONCE)
			is_wrong(WRONG_BELL);
		else if (++p->n_asks == ASKS_MAX)
			says_gone(p, q);
		else
			ask_again(p);
		return;
	}
	p->asking = ASK_UP;
	link_drop(p);
}

static bool
poll_step(struct process *p, const struct process *q)
{
	struct link *l = &p->link;

	if (p->dead || p->asking != ASK_ASKED || (l->reply == REPLY_NONE && l->state != LINK_ENDED))
		return false;
	if (l->reply != REPLY_NONE && l->of != p->wants && l->of != LIED)
		is_wrong(WRONG_ANSWER);
	if (l->reply == REPLY_NONE) {
		was_reset(p, q);
	} else if (l->probe) {
		p->sure = l->user == 0;
		if (p->sure)
			ask_again(p);
		else
			refuses(p, q);
	} else if (l->reply == REPLY_AGAIN) {
		ask_again(p);
	} else if (l->reply == REPLY_NO_SUCH) {
		says_gone(p, q);
	} else if (l->user != 0 && bug != BUG_NO_REPLY_USER) {
		refuses(p, q);
	} else {
		if (l->user != 0)
			is_wrong(WRONG_MET);
		takes(p, q);
	}
	return true;
}

static bool
look_gone_step(struct process *p, const struct process *q)
{
	if (p->dead || p->asking < ASK_LINKED || p->asking > ASK_UP || name_is_there(q, UP_NAMED))
		return false;
	says_gone(p, q);
	return true;
}

/* The worker of the peer is another: its address is announced anew. */
static bool
anew_step(struct process *p, const struct process *q)
{
	if (p->dead || (q->told & bit(2)) == 0 || p->wants != 1)
		return false;
	if (bug == BUG_ONE_LINK && p->asking == ASK_ASKED) {
		p->wants = 2;
		return true;
	}
	p->wants = 2;
	p->sure = 0;
	ask_again(p);
	return true;
}

/* -- faults -- */

static void
dies(struct process *q, struct process *asker)
{
	struct link *l = &asker->link;

	q->dead = 1;
	q->up = UP_NOT;
	queue_lost(q, l);
	if (l->state == LINK_ACCEPTED)
		link_end(l, false);
}

static void
forks(struct process *q, struct process *asker)
{
	q->child = CHILD_FORKED;
	q->copies = q->up;
	asker->link.leaked = asker->link.state == LINK_ACCEPTED;
}

/* It closes what it finds; what the thread of its parent had just accepted it does not. */
static bool
child_step(struct process *q, struct process *asker)
{
	if (q->child != CHILD_FORKED || bug == BUG_CHILD_LISTENS)
		return false;
	q->child = CHILD_CLEAN;
	q->copies = UP_NOT;
	if (q->up == UP_NOT)
		queue_lost(q, &asker->link);
	return true;
}

static bool
fault_step(enum step s, struct process *q, struct process *asker)
{
	static const unsigned of[] = {F_DEATH, F_FORK, F_USER, F_SCARCE, F_UNSENT, F_MEMORY, F_SILENCE, F_LIE, F_LIE,
		F_ASKER};

	if ((scene->faults & of[s - STEP_FAULTS]) == 0 || q->dead || (s == STEP_FORK && q->child != CHILD_NONE))
		return false;
	switch (s) {
	case STEP_DIE:
		dies(q, asker);
		return true;
	case STEP_FORK:
		forks(q, asker);
		return true;
	case STEP_USER:
		q->user ^= 1;
		return true;
	case STEP_NO_FDS:
		q->no_fds ^= 1;
		return q->no_fds;
	case STEP_NO_FDS_ASKER: /* the kernel cuts them off as it polls */
		if (asker->asking != ASK_ASKED || asker->link.reply != REPLY_FDS)
			return false;
		if (bug == BUG_SCARCE_IS_GONE)
			says_gone(asker, q);
		else
			ask_again(asker);
		return true;
	default:
		return bad_answer(s, q, asker);
	}
}

/* @return whether process i can take this step, which it then has */
static bool
take(struct state *st, enum step s, unsigned i)
{
	struct process *p = &st->p[i], *other = &st->p[1 - i];

	if (s >= STEP_FAULTS) {
		if (st->faults == scene->n_faults || (i == 0 && !scene->both))
			return false;
		st->faults++;
		return fault_step(s, p, other);
	}
	switch (s) {
	case STEP_MAIN:
		return (i == 1 || scene->both) && main_step(p, other);
	case STEP_USER_SEEN:
		if (!takes_turns(p) || p->listens_as == p->user)
			return false;
		p->listens_as = p->user;
		return true;
	case STEP_ACCEPT:
		return accept_step(p, other);
	case STEP_LOOK_UP:
		return look_up_step(p, other);
	case STEP_ANSWER:
		return answer_step(p, other);
	case STEP_ASK:
		return ask_step(p, other);
	case STEP_QUESTION:
		return question_step(p, other);
	case STEP_POLL:
		return poll_step(p, other);
	case STEP_LOOK_GONE:
		return look_gone_step(p, other);
	case STEP_ANEW:
		return anew_step(p, other);
	case STEP_CHILD:
		return child_step(p, other);
	default:
		if (p->dead || !p->no_fds || bug == BUG_SCARCE_IS_DEAF)
			return false;
		p->no_fds = 0;
		return true;
	}
}

/* -- all states -- */

#define STATES_MAX (1u << 20)
#define EDGES_MAX  (1u << 23)

struct edge {
	uint32_t from, to;
};

static struct state *all; /* seen.all */
static struct from {
	uint32_t state;
	uint8_t step, who;
} *from;
static struct edge *edges; /* by steps that are no faults */
static struct explore_states seen = {.len = sizeof(struct state), .max = STATES_MAX};
static uint32_t n_edges;

static uint32_t
number_of(const struct state *s)
{
	return explore_number(&seen, s);
}

static void
print_step(const struct state *s, enum step step, unsigned who)
{
	printf(" %s %s,", who == 0 ? "A" : "B", step == STEP_MAIN ? mains[s->p[who].script] : steps[step]);
}

static void
print_path(uint32_t i)
{
	if (i == 0)
		return;
	print_path(from[i].state);
	print_step(&all[from[i].state], from[i].step, from[i].who);
}

static enum wrong
report(enum wrong w, uint32_t at, enum step s, unsigned who)
{
	printf("\n    %s%s, in %s:", bug != BUG_NONE ? "found: " : "", wrongs[w], scene->name);
	print_path(at);
	if (s != STEPS)
		print_step(&all[at], s, who);
	printf("\n    ");
	return w;
}

static enum wrong
make_all(void)
{
	for (uint32_t i = 0; i < seen.n; i++) {
		for (unsigned k = 0; k < 2 * STEPS; k++) {
			struct state next = all[i];
			uint32_t to, before = seen.n;

			found = WRONG_NOTHING;
			if (!take(&next, k / 2, k % 2))
				continue;
			if (found != WRONG_NOTHING)
				return report(found, i, k / 2, k % 2);
			to = number_of(&next);
			if (to == before)
				from[to] = (struct from){i, (uint8_t)(k / 2), k % 2};
			if (k / 2 >= STEP_FAULTS)
				continue;
			UNIT_TRUE_FATAL(n_edges < EDGES_MAX);
			edges[n_edges++] = (struct edge){i, to};
		}
	}
	return WRONG_NOTHING;
}

/* Every living asker that knows a process to ask has an answer. */
static bool
has_ended(const struct state *s)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct process *p = &s->p[i], *q = &s->p[1 - i];

		if (!p->dead && q->told != 0 && p->asking < ASK_UP)
			return false;
	}
	return true;
}

/* Go back from the states that are good: which are not met? */
static enum wrong
look_ahead(void)
{
	uint32_t *begin = calloc(seen.n + 1, sizeof(*begin)), *into = malloc((n_edges + 1) * sizeof(*into));
	uint32_t *todo, n = 0;
	bool *good = calloc(seen.n, 1);
	enum wrong w = WRONG_NOTHING;

	todo = malloc(seen.n * sizeof(*todo));
	CU_ASSERT_FATAL(begin != NULL && into != NULL && todo != NULL && good != NULL);
	for (uint32_t i = 0; i < n_edges; i++)
		begin[edges[i].to]++;
	for (uint32_t i = 0, sum = 0; i <= seen.n; i++) {
		sum += i < seen.n ? begin[i] : 0;
		begin[i] = sum;
	}
	for (uint32_t i = 0; i < n_edges; i++)
		into[--begin[edges[i].to]] = edges[i].from;
	for (uint32_t i = 0; i < seen.n; i++) {
		good[i] = has_ended(&all[i]);
		if (good[i])
			todo[n++] = i;
	}
	while (n != 0) {
		uint32_t i = todo[--n];

		for (uint32_t k = begin[i]; k < begin[i + 1]; k++) {
			if (good[into[k]])
				continue;
			good[into[k]] = true;
			todo[n++] = into[k];
		}
	}
	for (uint32_t i = 0; i < seen.n && w == WRONG_NOTHING; i++)
		if (!good[i])
			w = report(WRONG_FOR_EVER, i, STEPS, 0);
	free(begin);
	free(into);
	free(todo);
	free(good);
	return w;
}

static enum wrong
explore(const struct scenario *s, enum bug b)
{
	struct state first = {.faults = 0};
	enum wrong w;

	scene = s;
	bug = b;
	seen.n = n_edges = 0;
	memset(seen.places, 0, 2 * STATES_MAX * sizeof(*seen.places));
	first.p[0].user = first.p[1].user = s->user;
	number_of(&first);
	w = make_all();
	return w != WRONG_NOTHING ? w : look_ahead();
}

/* -- tests -- */

#define F_REPLIES (F_MEMORY | F_UNSENT | F_SILENCE | F_SCARCE | F_ASKER)

static const struct scenario scenes[] = {
	{.name = "withdrawing", .faults = F_DEATH | F_FORK | F_REPLIES, .withdraws = true, .n_faults = 3},
	{.name = "withdrawing one of two", .faults = F_DEATH | F_FORK | F_REPLIES, .withdraws = true, .keeps = true,
		.n_faults = 3},
	{.name = "a liar", .faults = F_LIE | F_DEATH, .withdraws = true, .n_faults = 2},
	{.name = "both ask", .faults = F_DEATH | F_FORK | F_REPLIES, .both = true, .n_faults = 2},
	{.name = "another user", .faults = F_USER | F_DEATH | F_SILENCE, .withdraws = true, .n_faults = 3},
	{.name = "met in the end", .faults = F_USER | F_SCARCE, .withdraws = true, .user = 1, .n_faults = 3},
};

static void
right_in_every_order(const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(scenes); i++) {
		if (strcmp(scenes[i].name, name) != 0)
			continue;
		UNIT_EQ(explore(&scenes[i], BUG_NONE), WRONG_NOTHING);
		UNIT_TRUE(seen.n > 300);
		printf("%u states ", seen.n);
	}
}

static void
withdrawing_is_right_in_every_order(void)
{
	right_in_every_order("withdrawing");
	right_in_every_order("withdrawing one of two");
}

static void
liars_get_nothing_in_every_order(void)
{
	right_in_every_order("a liar");
}

static void
two_that_ask_each_other_connect_in_every_order(void)
{
	right_in_every_order("both ask");
}

static void
a_change_of_user_is_right_in_every_order(void)
{
	right_in_every_order("another user");
	right_in_every_order("met in the end");
}

/* Without a fault nobody is given up: both end connected. */
static void
without_faults_both_end_connected(void)
{
	static const struct scenario calm = {.name = "no faults", .both = true};
	unsigned n = 0;

	UNIT_EQ(explore(&calm, BUG_NONE), WRONG_NOTHING);
	for (uint32_t i = 0; i < seen.n; i++) {
		const struct state *s = &all[i];

		UNIT_TRUE(s->p[0].asking <= ASK_UP && s->p[1].asking <= ASK_UP);
		n += s->p[0].asking == ASK_UP && s->p[1].asking == ASK_UP;
	}
	UNIT_TRUE(n != 0);
}

static const struct {
	const char *name;
	enum bug bug;
	enum wrong as; /* for which it is found in one of the scenarios */
} mistakes[] = {
	{"what came is not proven", BUG_NO_PROOF, WRONG_UNPROVEN},
	{"the lock is let go before the reply is sent", BUG_NO_LOCK, WRONG_HANDED},
	{"a descriptor is closed before it is withdrawn", BUG_CLOSED_FIRST, WRONG_HANDED},
	{"a second question on the first's connection", BUG_ONE_LINK, WRONG_ANSWER},
	{"a segment is not asked for its number", BUG_NO_NAME_CHECK, WRONG_OLD},
	{"an address goes out before the offer", BUG_TOLD_EARLY, WRONG_GONE},
	{"who closes without a reply has gone", BUG_RESET_IS_GONE, WRONG_GONE},
	{"a reply that can't be sent is the end", BUG_UNSENT_IS_SILENCE, WRONG_GONE},
	{"without memory there is no such segment", BUG_NO_MEMORY_IS_NONE, WRONG_GONE},
	{"an asker without descriptors gives up", BUG_SCARCE_IS_GONE, WRONG_GONE},
	{"who was out of descriptors stays deaf", BUG_SCARCE_IS_DEAF, WRONG_FOR_EVER},
	{"only the user of the listener counts", BUG_LISTENER_ONLY, WRONG_REFUSED},
	{"the user of the reply does not count", BUG_NO_REPLY_USER, WRONG_MET},
	{"a bell is shown before it is offered", BUG_BELL_LATE, WRONG_GONE},
	{"who got no bell does not ask again", BUG_BELL_ONCE, WRONG_BELL},
	{"a child keeps the sockets", BUG_CHILD_LISTENS, WRONG_FOR_EVER},
	{"a connection is not shut down", BUG_CLOSE_ONLY, WRONG_FOR_EVER},
	{"a name that a child has for a moment is an error", BUG_NAME_IS_TAKEN, WRONG_OFFER},
	{"the thread that asks is the one that answers", BUG_ASKER_ANSWERS, WRONG_FOR_EVER},
	{"who was ended before it asked gives up", BUG_UNHEARD_IS_ERROR, WRONG_GONE},
};

static void
each_planted_mistake_is_found(void)
{
	for (unsigned i = 0; i < RTE_DIM(mistakes); i++) {
		bool is_found = false;

		printf("\n  %s:", mistakes[i].name);
		for (unsigned k = 0; k < RTE_DIM(scenes) && !is_found; k++)
			is_found = explore(&scenes[k], mistakes[i].bug) == mistakes[i].as;
		if (!UNIT_TRUE(is_found))
			printf("not found: %s\n", mistakes[i].name);
	}
}

static CU_TestInfo tests[] = {
	UNIT_TEST(without_faults_both_end_connected),
	UNIT_TEST(withdrawing_is_right_in_every_order),
	UNIT_TEST(liars_get_nothing_in_every_order),
	UNIT_TEST(two_that_ask_each_other_connect_in_every_order),
	UNIT_TEST(a_change_of_user_is_right_in_every_order),
	UNIT_TEST(each_planted_mistake_is_found),
	CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
	{"meet_explore", NULL, NULL, NULL, NULL, tests},
	CU_SUITE_INFO_NULL,
};

int
main(void)
{
	all = malloc(STATES_MAX * sizeof(*all));
	from = malloc(STATES_MAX * sizeof(*from));
	seen.all = (uint8_t *)all;
	seen.places = malloc(2 * STATES_MAX * sizeof(*seen.places));
	edges = malloc(EDGES_MAX * sizeof(*edges));
	if (all == NULL || from == NULL || seen.places == NULL || edges == NULL)
		return EXIT_FAILURE;
	return unit_run(suites);
}
