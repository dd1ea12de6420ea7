#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""reset.py - a middle box that resets TCP connections over IPv4 between two ports of a bridge, in the name of both ends

usage: reset.py PORT-OF-BRIDGE PORT-OF-BRIDGE
"""
import socket
import struct
import sys

RST_ACK = 0x14


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff


class Segment:
    """A TCP segment of a frame."""

    def __init__(self, frame):
        head, self.eth = frame[14:34], frame[:14]
        end = 14 + struct.unpack("!H", head[2:4])[0]
        self.src, self.dst = head[12:16], head[16:20]
        tcp = frame[14 + (head[0] & 15) * 4:end]
        self.sport, self.dport, self.seq, self.ack = struct.unpack("!HHII", tcp[:12])
        self.flags, self.len = tcp[13], len(tcp) - (tcp[12] >> 4) * 4

    def next(self):
        """What its sender says next."""
        return self.seq + self.len & 0xffffffff


def reset(eth, src, dst, sport, dport, seq, ack):
    tcp = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, 5 << 4, RST_ACK, 0, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", checksum(src + dst + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + src + dst
    return eth + ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp


def port(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # of every kind
    s.bind((name, 0))
    return s


def main():
    near, far = port(sys.argv[1]), port(sys.argv[2])
    while True:
        frame, source = near.recvfrom(65535)
        if source[2] == socket.PACKET_OUTGOING or frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
            continue
        s = Segment(frame)
        if s.flags & 0x07:  # the connection begins, or is over
            continue
        far.send(reset(s.eth, s.src, s.dst, s.sport, s.dport, s.next(), s.ack))
        near.send(reset(s.eth[6:12] + s.eth[:6] + s.eth[12:], s.dst, s.src, s.dport, s.sport, s.ack, s.next()))


if __name__ == "__main__":
    main()
