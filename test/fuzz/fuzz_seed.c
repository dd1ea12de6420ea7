/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * fuzz_seed.c - makes the inputs that the fuzz targets begin with
 *
 * usage: fuzz_seed FOLDER
 * Writes FOLDER/TARGET/NN; the same bytes every time, those of one target whatever is done for
 * others. The test fuzz_seed compares them with corpus/.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plx_wire.h"

#define SEED_MAX 2048

static const char *folder, *target;
static unsigned serial;
static uint8_t buf[SEED_MAX];
static size_t used;
static uint64_t rng;

static uint8_t
any(void)
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint8_t)(z >> 40);
}

/* What follows are inputs of this target, from that number on. */
static void
begin(const char *name, unsigned first)
{
	target = name;
	serial = first;
	rng = first + 1;
	while (*name != '\0')
		rng = rng * 31 + (uint8_t)*name++;
}

static void
put(uint8_t byte)
{
	if (used < sizeof(buf))
		buf[used++] = byte;
}

static void
put_any(unsigned n)
{
	static const uint8_t usual[] = {0, 0, 0, 1, 2, 7, 8, 16, 255};

	while (n-- > 0)
		put(any() & 1 ? usual[any() % sizeof(usual)] : any());
}

static void
end(void)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, target);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		exit(1);
	snprintf(path, sizeof(path), "%s/%s/%02u", folder, target, serial++);
	f = fopen(path, "wb");
	if (f == NULL || fwrite(buf, 1, used, f) != used || fclose(f) != 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	used = 0;
}

/* One message of each opcode with all that can be made right made right, and turns. */
static void
wire_opcodes(uint8_t device, uint8_t how_device)
{
	put(device);
	put(how_device);
	for (unsigned op = 1; op < PLX_WIRE_N; op++) {
		for (unsigned k = 0; k < 4; k++) { /* a command of the application before it */
			put((uint8_t)(6 + (op * 4 + k) % 20));
			put((uint8_t)(k & 1));
			put_any(2);
		}
		put(1);
		put((uint8_t)(op & 1));
		put((uint8_t)op);
		put(0x7f);
		put(8);
		put_any(plx_wire_hdr_len[op] + 8u);
		put(0);
		put(0x0e);
	}
	end();
}

static void
wire(void)
{
	begin("wire", 0);
	wire_opcodes(0, 0);
	wire_opcodes(4, 0x10);
	wire_opcodes(1, 0x27);
	for (unsigned i = 0; i < 24; i++) {
		put(any());
		put(any());
		for (unsigned k = 0; k < 12u + i * 2; k++) {
			put(any() % 32);
			put(any());
			put_any(any() % 24);
		}
		end();
	}
}

/* Inputs of targets that lay them over something real: how, then where to change it. */
static void
overlay(const char *name, unsigned n_hows, unsigned len)
{
	begin(name, 0);
	for (unsigned how = 0; how < n_hows; how++) {
		put((uint8_t)how);
		for (unsigned i = 0; i < len; i++)
			put(how & 1 ? 0 : any());
		end();
		put((uint8_t)how);
		for (unsigned i = 0; i < len; i++)
			put(any() % 16 == 0 ? any() : 0);
		end();
	}
}

static void
conn(void)
{
	static const uint8_t kinds[] = {PLX_WIRE_CONN_HELLO, PLX_WIRE_CONN_ACCEPT,
		PLX_WIRE_CONN_REJECT, PLX_WIRE_CONN_DONE};

	begin("conn", 0);
	for (unsigned i = 0; i < 16; i++) {
		const struct plx_wire_conn h = {.version = 1, .kind = kinds[i % 4],
			.err_mode = i >> 2 & 1, .conn_id = PLX_WIRE_CONN_ID_MIN + i};

		put((uint8_t)(2 | i >> 3));
		for (unsigned k = 0; k < 1 + (i >> 3); k++) {
			if (i >> 3) { /* over the socket: how, length */
				put(i & 4 ? 2 : 3);
				put(sizeof(h));
				put(0);
			}
			for (unsigned b = 0; b < sizeof(h); b++)
				put(((const uint8_t *)&h)[b]);
		}
		end();
	}
}

static void
shm(void)
{
	begin("shm", 0);
	for (unsigned i = 0; i < 24; i++) {
		put(0);
		put(i & 3);
		for (unsigned k = 0; k < 8 + i; k++) {
			put(i < 12 ? 1 + k % 5 : any() % 8);
			put((uint8_t)((any() & 0xfc) | (i & 3)));
			put_any(any() % 40);
			put(5);
			put(0x24);
		}
		end();
	}
}

static void
put_text(const char *text)
{
	while (*text != '\0')
		put((uint8_t)*text++);
}

/* Programs of commands: turns between them, so that something comes about. */
static void
chan(void)
{
	begin("chan", 0);
	for (unsigned i = 0; i < 24; i++) {
		put(i & 15);
		put(i % 3 << 2);
		put_any(65); /* the first request */
		for (unsigned k = 0; k < 10 + i * 2; k++) {
			put((uint8_t)(k + i * 5) % 16);
			put(any() & 0x7f);
			put_any(any() % 24);
			put(0);
			put((uint8_t)(k & 1));
		}
		end();
	}
}

static void
ini(void)
{
	static const char *const texts[] = {"",
		"# comment\n[one]\ntransport = shm\n\n[two] # more\ntransport=shm\npriority = 90\n",
		"[a]\ntransport = psm\ndefault = 1\ndevice = ipath0,ipath1\nqos = fast\n",
		"[a\n", "[]\n", "key = value\n", "[a]\n= 5\n", "[a]\nkey\n", "[a]\nk = 1\nk = 2\n",
		"[a]\r\n\ttransport\t=\tshm \r\ncci.recv_bufs = 4k\r\n", "[ a ]\nx = y = z # c # d"};

	begin("ini", 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_text(texts[i]);
		end();
	}
}

static void
ucx(void)
{
	static const char *const texts[] = {"", "=", "TLS=all\nTLS=^sm,tcp\nTLS=all,sm",
		"NET_DEVICES=mlx5_[0-3]:1,eth0\nSHM_DEVICES=^memory\nNET_DEVICES=a[1-200]b",
		"RNDV_THRESH=8k\nRNDV_THRESH=intra:inf,inter:64k\nRNDV_THRESH=inter:1k",
		"KEEPALIVE_INTERVAL=20s\nKEEPALIVE_INTERVAL=1.5m\nRCACHE_OVERHEAD=7ns",
		"BCOPY_BW=10GBps\nBCOPY_BW=80b/s\nBCOPY_BW=auto\nDISTANCE_BW=phb:1KBps,auto",
		"PROTO_OVERHEAD=single:5ns,1us\nDISTANCE_LAT=sys:1us", "MAX_*_RAILS=3\nRC_*=y\n?LS=sm",
		"IB_SEG_SIZE=8k\nIB_SEG_SIZE=9k\nUD_SL=1", "DEBUG_SIGNO=SIGUSR1\nERROR_SIGNALS=SIGBUS,8",
		("RNDV_PERF_DIFF=1.5\nMULTI_PATH_RATIO=1e-9\nNUM_EPS=auto\nMAX_RMA_RAILS=-1\n"
		 "RKEY_MPOOL_MAX_MD=0x10"), "MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda,host\nRNDV_SCHEME=am",
		"RX_MPOOL_SIZES=64,1k\nPLUGIN_PATH=/a::/b\nALLOC_PRIO=a,,b\nTM_SW_RNDV=try\nGVA_ENABLE=on"};

	begin("ucx", 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_text(texts[i]);
		end();
	}
}

static void
uri(void)
{
	static const char *const texts[] = {"", "shm://mc/group", "cci+fuzz://", "cci+shm://UExYQQ",
		"service", "../x", "ip://1.2.3.4:5", "a_b-c.d"};

	begin("uri", 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		for (unsigned how = 0; how < 5; how++) {
			put((uint8_t)(how | i % 5 << 4));
			put_text(texts[i]);
			end();
		}
	}
}

/* Addresses of workers with several ports, taken as they are. */
static void
addr_of_ports(void)
{
	begin("addr", 16);
	for (unsigned n = 1; n <= 4; n++) {
		struct plx_wire_addr a = {.uid = n, .n_devs = (uint8_t)n};
		uint8_t packed[PLX_WIRE_ADDR_MAX];

		for (unsigned i = 0; i < n; i++) {
			strcpy(a.devs[i].name, "net_mlx");
			a.devs[i].len = 48;
			for (unsigned k = 0; k < 48; k++)
				a.devs[i].bytes[k] = k < 8 || k >= 30 ? any() : (uint8_t)k;
		}
		put(2);
		for (int i = 0, len = plx_wire_addr_pack(&a, packed, sizeof(packed)); i < len; i++)
			put(packed[i]);
		end();
	}
}

/* Keys of memory that several ports have, and none. */
static void
rkey_of_ports(void)
{
	begin("rkey", 24);
	for (unsigned n = 0; n <= PLX_WIRE_RKEY_KEYS; n++) {
		struct plx_wire_rkey k = {.rights = 3, .len = 8, .window = n % 2, .n_devs = n,
			.devs = {{1, 1}, {2, 2}, {3, 3}, {4, 4}}};
		uint8_t packed[PLX_WIRE_RKEY_MAX];
		size_t len = plx_wire_rkey_pack(&k, packed);

		put(2);
		for (size_t i = 0; i < len; i++)
			put(packed[i]);
		end();
	}
}

static void
put_fds(unsigned n, uint8_t first)
{
	put((uint8_t)n);
	for (unsigned i = 0; i < n; i++)
		put((uint8_t)(first + i * 3));
}

/* Questions and replies: right ones with each kind of descriptor, and wrong ones. */
static void
meet(void)
{
	begin("meet", 0);
	for (unsigned i = 0; i < 8; i++) { /* a question, right but for one byte, or of another length */
		put(1);
		put(i % 2);
		if (i % 2 != 0)
			put((uint8_t)(8 * i));
		for (unsigned k = 0; k < 24; k++)
			put(i > 1 && k == 3 * i ? any() : 0);
		put_fds(i / 2, (uint8_t)i);
		end();
	}
	for (unsigned i = 0; i < 32; i++) { /* a reply */
		put(0);
		put((uint8_t)(i % 8));
		put(0);
		put(i % 5 == 4);
		if (i % 5 == 4)
			put((uint8_t)(4 * i));
		for (unsigned k = 0; k < 16; k++)
			put(i >= 22 && k == i % 16 ? any() : 0);
		put_fds(i < 11 ? 1 : i % 7, (uint8_t)i);
		put(3);
		end();
	}
	/* The truth: memory; memory and a bell; with a pidfd. */
	for (unsigned mask = 1; mask < 8; mask = mask * 2 + 1) {
		static const uint8_t kinds[] = {0, 3, 6};
		unsigned n = mask == 1 ? 1 : mask == 3 ? 2 : 3;

		put(0);
		put((uint8_t)mask);
		put(0);
		put(0);
		for (unsigned k = 0; k < 16; k++)
			put(0);
		put((uint8_t)n);
		for (unsigned k = 0; k < n; k++)
			put(kinds[k]);
		put(3);
		end();
	}
}

/* Handshakes, kept or changed in one place, and frames of every opcode behind them. */
static void
tcp(void)
{
	begin("tcp", 0);
	for (unsigned how = 0; how < 32; how++) {
		put((uint8_t)how);
		for (unsigned n = (how >> 3 & 1) + (how >> 4); n > 0; n--) {
			put(0);
			put(any());
			put(any() | 1);
		}
		for (unsigned i = 0; i < PLX_WIRE_N; i++) {
			uint8_t op = (uint8_t)((i + how * 7) % PLX_WIRE_N);

			put(how & 2 ? 0x12 : 2);
			put(op);
			put(8);
			if (how & 2)
				put(how & 3);
			put_any(plx_wire_hdr_len[op] + 8u);
		}
		end();
	}
}

/* Further connections, writes that go by them, messages behind those. */
static void
tcp_further(void)
{
	for (unsigned how = 0; how < 32; how++) {
		put((uint8_t)(how & 1));
		for (unsigned i = 1; i < 4; i++) {
			put(3);
			put((uint8_t)i);
		}
		for (unsigned i = 0; i < 4; i++) {
			put(4); /* data of 8 bytes or so */
			put((uint8_t)(2 + (how & 1 ? any() & 0x2f : 8)));
			put((uint8_t)(8 + i));
			put((uint8_t)(how >> 1 & 3));
			put(any());
			put(3);
			put((uint8_t)((how >> 1 & 3) + (how & 16) * 8));
			put((uint8_t)(7 + i)); /* bytes but one */
			put_any(8 + i);
			put(2);
			put((uint8_t)i);
			put(8);
			put_any(16);
		}
		end();
	}
}

/* Each command in each of its ways, and some behind each other. */
static void
udp(void)
{
	begin("udp", 0);
	for (unsigned how = 0; how < 128; how++) {
		for (unsigned i = 0; i < 4; i++) {
			put((uint8_t)((how + i * 37) % 128));
			put(any());
			put_any(20);
		}
		end();
	}
}

int
main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: fuzz_seed FOLDER\n");
		return 2;
	}
	folder = argv[1];
	if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
		perror(folder);
		return 1;
	}
	wire();
	overlay("addr", 8, 80);
	overlay("rkey", 12, 64);
	conn();
	shm();
	chan();
	ini();
	uri();
	ucx();
	addr_of_ports();
	rkey_of_ports();
	meet();
	tcp();
	tcp_further();
	udp();
	return 0;
}
