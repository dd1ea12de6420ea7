#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""abi_layout_test.py - our UCP headers against those of an installed UCX

Compares what a caller's binary depends on: size of every type, offset, size and
type of every field, value of every enumerator and constant macro, signature of
every function and callback. Everything is taken from the reference headers by
parsing them; no list of names is kept here. What may differ is in ALLOWED and
SUBSET below.

usage: abi_layout_test.py CC INCLUDE_DIR [--ref DIR] [--map FILE]... [--self-test]

--ref        where the reference headers are, default /usr/include
--map        a linker version script that must export exactly our ucp_ functions
--self-test  break copies of our headers in several ways and see that each is found

Exit status: 0 no mismatch, 1 mismatches (one line each), 77 nothing to compare with.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HEADERS = [
    "ucp/api/ucp.h", "ucp/api/ucp_def.h", "ucp/api/ucp_compat.h", "ucp/api/ucp_version.h",
    "ucs/type/status.h", "ucs/type/thread_mode.h", "ucs/type/cpu_set.h",
    "ucs/memory/memory_type.h", "ucs/config/types.h", "ucs/sys/compiler_def.h",
    "ucs/debug/log_def.h",
]

# Of these headers we carry only a part: a name that is missing is not a mismatch,
# one that is there must be right. (The rest configures UCX's inside; no ucp_
# function takes it.) Names that a ucp_ function needs are demanded all the same.
SUBSET = {"ucs/config/types.h", "ucs/sys/compiler_def.h", "ucs/debug/log_def.h"}
SUBSET_DEMANDED = re.compile(r"^(UCS_CONFIG_PRINT_|ucs_config_print_flags_t$|ucs_sock_addr|"
                             r"BEGIN_C_DECLS$|END_C_DECLS$|UCS_BIT$|UCS_MASK$|UCS_S_PACKED$|"
                             r"UCS_PTR_BYTE_OFFSET$)")

# Fields that later releases gave a name of their own.
RENAMED = {("ucs_config_names_array_t", "pad"): "truncated"}

# Numbers that grow with releases: ours must not be smaller.
ALLOWED_GREATER = {"UCS_MEMORY_TYPE_LAST", "UCS_MEMORY_TYPE_UNKNOWN", "UCP_API_MINOR",
                   "UCP_API_VERSION"}
# Sets of bits that grow with releases: ours must have all bits of theirs.
ALLOWED_SUPERSET = {"UCS_MEMORY_TYPES_CPU_ACCESSIBLE"}
# Data that lives in libucs, which stays the distribution's.
ALLOWED_MISSING_DATA = re.compile(r"^ucs_\w+_(names|descs)$")

# Function-like macros are compared by what they give; a macro of the reference that
# is not here is only demanded to exist.
CALLS = {
    "UCS_BIT": ["UCS_BIT(0)", "UCS_BIT(31)", "UCS_BIT(63)"],
    "UCS_MASK": ["UCS_MASK(0)", "UCS_MASK(3)", "UCS_MASK(40)"],
    "UCS_BIT_GET": ["UCS_BIT_GET(6, 1)", "UCS_BIT_GET(6, 0)", "UCS_BIT_GET(1ul << 63, 63)"],
    "UCS_PTR_IS_ERR": ["UCS_PTR_IS_ERR((void*)%s)" % v for v in ("0", "1", "-1", "-100", "-101")],
    "UCS_PTR_IS_PTR": ["UCS_PTR_IS_PTR((void*)%s)" % v for v in ("0", "1", "2", "-100", "-101")],
    "UCS_PTR_RAW_STATUS": ["UCS_PTR_RAW_STATUS((void*)-5)"],
    "UCS_PTR_STATUS": ["UCS_PTR_STATUS((void*)0)", "UCS_PTR_STATUS((void*)-9)",
                       "UCS_PTR_STATUS((void*)4096)"],
    "UCS_STATUS_PTR": ["(long)UCS_STATUS_PTR(UCS_ERR_CANCELED)"],
    "UCS_STATUS_IS_ERR": ["UCS_STATUS_IS_ERR(UCS_OK)", "UCS_STATUS_IS_ERR(UCS_INPROGRESS)",
                          "UCS_STATUS_IS_ERR(UCS_ERR_LAST)"],
    "UCS_IS_LINK_ERROR": ["UCS_IS_LINK_ERROR((ucs_status_t)%d)" % v for v in (-39, -40, -59, -60)],
    "UCS_IS_ENDPOINT_ERROR": ["UCS_IS_ENDPOINT_ERROR((ucs_status_t)%d)" % v
                              for v in (-59, -60, -89, -90)],
    "UCP_VERSION": ["UCP_VERSION(1, 13)", "UCP_VERSION(2, 3)"],
    "UCS_CPUELT": ["UCS_CPUELT(0)", "UCS_CPUELT(200)"],
    "UCS_CPUMASK": ["UCS_CPUMASK(0)", "UCS_CPUMASK(200)"],
    "ucp_dt_make_contig": ["ucp_dt_make_contig(1)", "ucp_dt_make_contig(4096)"],
    "ucp_dt_make_iov": ["ucp_dt_make_iov()"],
    "UCS_PTR_BYTE_OFFSET": ["(long)UCS_PTR_BYTE_OFFSET(4096, -96)"],
    "UCS_PTR_BYTE_DIFF": ["UCS_PTR_BYTE_DIFF((void*)64, (void*)32)"],
    "UCS_PTR_TYPE_OFFSET": ["(long)UCS_PTR_TYPE_OFFSET(64, int)"],
    "ucs_offsetof": ["ucs_offsetof(ucp_dt_iov_t, length)"],
    "ucs_field_sizeof": ["ucs_field_sizeof(ucp_dt_iov_t, length)"],
}

# What later releases than the installed one appended, as far as we carry it; checked
# also where there is nothing to compare with.
LATER = {
    "offsetof(ucp_params_t, node_local_id)": 80, "sizeof(ucp_params_t)": 88,
    "offsetof(ucp_context_attr_t, device_counter_size)": 64, "sizeof(ucp_context_attr_t)": 72,
    "offsetof(ucp_ep_attr_t, transports)": 296, "offsetof(ucp_ep_attr_t, user_data)": 320,
    "sizeof(ucp_ep_attr_t)": 328, "sizeof(ucp_transports_t)": 24,
    "sizeof(ucp_transport_entry_t)": 16,
    "offsetof(ucp_mem_map_params_t, exported_memh_buffer)": 40,
    "sizeof(ucp_mem_map_params_t)": 48,
    "offsetof(ucp_request_param_t, remote_datatype)": 72,
    "offsetof(ucp_request_param_t, remote)": 80,
    "offsetof(ucp_request_param_t, remote_count)": 88, "sizeof(ucp_request_param_t)": 96,
    "sizeof(ucp_memh_pack_params_t)": 16, "sizeof(ucp_datatype_attr_t)": 32,
    "sizeof(ucp_dt_local_sgl_t)": 48, "sizeof(ucp_dt_remote_sgl_t)": 32,
    "sizeof(ucp_worker_params_t)": 200, "sizeof(ucp_worker_attr_t)": 80,
    "sizeof(ucp_ep_params_t)": 104, "sizeof(ucs_status_t)": 1,
    "UCP_FEATURE_EXPORTED_MEMH": 0x80, "UCP_FEATURE_DEVICE": 0x100,
    "UCP_PARAM_FIELD_NODE_LOCAL_ID": 0x200, "UCP_ERR_HANDLING_MODE_FAILOVER": 2,
    "UCP_OP_ATTR_FIELD_REMOTE_DATATYPE": 0x200, "UCP_OP_ATTR_FIELD_REMOTE": 0x400,
    "UCP_OP_ATTR_FIELD_REMOTE_COUNT": 0x800, "UCP_DATATYPE_SGL": 4,
    "UCP_MEM_MAP_SYMMETRIC_RKEY": 8, "UCP_MEM_MAP_LOCK": 16, "UCP_AM_SEND_FLAG_COPY_HEADER": 8,
    "UCP_EP_ATTR_FIELD_TRANSPORTS": 8, "UCP_EP_ATTR_FIELD_USER_DATA": 16,
    "UCS_MEMORY_TYPE_RDMA": 5, "UCS_MEMORY_TYPE_ZE_MANAGED": 8, "UCS_MEMORY_TYPE_UNKNOWN": 10,
    "UCP_API_VERSION": 1 << 24 | 23 << 16, "UCS_MEM_FLAG_REGISTRABLE": 1, "UCS_BIT_GET(4, 2)": 1,
    "UCS_LOG_LEVEL_DIAG": 3, "UCS_LOG_LEVEL_TRACE_POLL": 11, "UCS_LOG_LEVEL_PRINT": 13,
    "offsetof(ucs_log_component_config_t, file_filter)": 24, "UCS_LOG_FUNC_RC_CONTINUE": 1,
    "UCS_ASYNC_MODE_POLL": 3, "UCS_AUTO": 3, "UCS_CONFIG_AUTO": 2, "UCS_HANDLE_ERROR_NONE": 3,
    "sizeof(ucs_config_allow_list_t)": 24, "UCS_CONFIG_ALLOW_LIST_NEGATE": 2,
    "ucs_same_type(int, int)": 1, "ucs_is_unsigned_type(unsigned)": 1,
}

C_WORDS = set("""void char short int long float double signed unsigned const volatile struct union
enum restrict static extern inline size_t ssize_t FILE socklen_t uint8_t uint16_t uint32_t uint64_t
int8_t int16_t int32_t int64_t""".split())
IDENT = re.compile(r"^[A-Za-z_]\w*$")


class Failure(Exception):
    """The reference or our headers cannot be used at all."""


def tokens(text):
    return re.findall(r"[A-Za-z_]\w*|\d[\w.]*|\.\.\.|[^\s\w]", text)


def match(toks, i, left, right):
    """Index of the token that closes the bracket at toks[i]."""
    depth = 0
    while i < len(toks):
        depth += (toks[i] == left) - (toks[i] == right)
        if depth == 0:
            return i
        i += 1
    raise Failure("unbalanced " + left)


def drop_attributes(toks):
    out, i = [], 0
    while i < len(toks):
        if toks[i] in ("__attribute__", "__asm__", "_Alignas"):
            i = match(toks, i + 1, "(", ")") + 1
        elif toks[i] in ("__extension__", "__inline", "__inline__", "inline"):
            i += 1
        else:
            out.append({"__const": "const", "__restrict": "restrict"}.get(toks[i], toks[i]))
            i += 1
    return out


def split_list(toks, sep=","):
    parts, cur, depth = [], [], 0
    for t in toks:
        depth += (t in "([{") - (t in ")]}")
        if t == sep and depth == 0:
            parts.append(cur)
            cur = []
        else:
            cur.append(t)
    if cur:
        parts.append(cur)
    return parts


class Header:
    """What one set of headers declares."""

    def __init__(self, cc, inc):
        self.cc, self.inc = cc, inc
        self.structs = {}      # "ucp_params_t" or "struct ucp_params" -> {field path: type text}
        self.enumerators = {}  # name -> header
        self.macros = {}       # name -> (header, function-like, body)
        self.functions = {}    # name -> normalized signature
        self.proto_text = {}   # name -> prototype, to be declared again
        self.typedefs = {}     # name -> declaration text
        self.data = set()
        self.origin = {}       # name -> header
        self._preprocess()

    def _run(self, args, text):
        p = subprocess.run(self.cc + args + ["-I", self.inc, "-"], input=text, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if p.returncode:
            raise Failure("%s: %s" % (self.inc, p.stderr.strip()))
        return p.stdout

    def _preprocess(self):
        src = "".join("#include <%s>\n" % h for h in HEADERS)
        out = self._run(["-std=gnu11", "-xc", "-E", "-dD"], src)
        base = os.path.realpath(self.inc) + os.sep
        where, kept = None, {}
        for line in out.splitlines():
            m = re.match(r'#(?:line)? ?(\d+) "([^"]*)"', line)
            if m:
                path = os.path.realpath(m.group(2))
                where = path[len(base):] if path.startswith(base) else None
                if where not in HEADERS:
                    where = None
            elif where is None:
                continue
            elif line.startswith("#define "):
                m = re.match(r"#define (\w+)(\([^)]*\))? ?(.*)", line)
                self.macros[m.group(1)] = (where, m.group(2) is not None, m.group(3).strip())
            elif not line.startswith("#"):
                kept.setdefault(where, []).append(line)
        for where in HEADERS:
            self._parse(where, drop_attributes(tokens("\n".join(kept.get(where, [])))))

    def _parse(self, where, toks):
        i, start = 0, 0
        while i < len(toks):
            if toks[i] == "{":
                end = match(toks, i, "{", "}")
                head = toks[start:i]
                if head and head[-1] == ")":        # body of an inline function
                    self._declaration(where, head)
                    i = start = end + 1
                    continue
                i = end
            elif toks[i] == ";":
                self._declaration(where, toks[start:i])
                start = i + 1
            i += 1

    def _declaration(self, where, d):
        if not d:
            return
        is_typedef = d[0] == "typedef"
        body = d[1:] if is_typedef else d
        if body[0] in ("struct", "union", "enum") and "{" in body:
            left = body.index("{")
            if left <= 2:
                self._definition(where, body, left, is_typedef)
                return
        if is_typedef:
            name = self._declared_name(body)
            self.typedefs[name] = " ".join(d)
            self.origin[name] = where
        elif d[0] == "extern" and "(" not in d:
            self.data.add(self._declared_name([t for t in d if t not in "[]"]))
        elif "(" in d:
            self._function(where, [t for t in d if t not in ("static", "extern")])

    def _definition(self, where, body, left, is_typedef):
        right = match(body, left, "{", "}")
        names = []
        if left == 2:
            names.append(body[0] + " " + body[1])
        if is_typedef:
            names.append(body[right + 1])
        inside = body[left + 1:right]
        if body[0] == "enum":
            for e in split_list(inside):
                self.enumerators[e[0]] = where
            fields = {}
        else:
            fields = self._fields(inside, "")
        for n in names:
            self.structs[n] = fields
            self.origin[n] = where

    def _fields(self, toks, prefix):
        out = {}
        for f in split_list(toks, ";"):
            if f[0] in ("struct", "union") and "{" in f:
                left = f.index("{")
                right = match(f, left, "{", "}")
                name = f[right + 1] if right + 1 < len(f) else ""
                path = prefix + (name + "." if name else "")
                if name:
                    out[prefix + name] = f[0]
                out.update(self._fields(f[left + 1:right], path))
                continue
            first, *more = split_list(f)
            name = self._declared_name(first)
            out[prefix + name] = self._type_text(first)
            for m in more:
                out[prefix + self._declared_name(m)] = "as " + name
        return out

    @staticmethod
    def _declared_name(toks):
        for i in range(len(toks) - 2):              # ( * name ) or ( name )
            if toks[i] == "(" and toks[i + 1] == "*" and IDENT.match(toks[i + 2]):
                return toks[i + 2]
        end = toks.index("[") if "[" in toks else len(toks)
        return [t for t in toks[:end] if IDENT.match(t)][-1]

    @classmethod
    def _type_text(cls, toks):
        """Type of a declaration: parameter and field names removed."""
        toks = list(toks)
        if "(" in toks:                             # function pointer
            left = toks.index("(")
            mid = match(toks, left, "(", ")")
            args = toks[mid + 2:match(toks, mid + 1, "(", ")")]
            return "%s (*)(%s)" % (" ".join(toks[:left]), cls._params_text(args))
        array = ""
        if "[" in toks:
            at = toks.index("[")
            array = " []"
            toks = toks[:at]
        words = [i for i, t in enumerate(toks) if IDENT.match(t) and t not in C_WORDS]
        tagged = toks[0] in ("struct", "union", "enum") or \
            (toks[0] == "const" and toks[1] in ("struct", "union", "enum"))
        base = [t for t in toks if t in C_WORDS and t not in ("const", "volatile", "struct",
                                                              "union", "enum", "restrict")]
        types = 0 if base else (1 if not tagged else 1)
        if len(words) > types and words[-1] == len(toks) - 1:
            del toks[-1]                            # the name
        if toks and toks[0] != "const" and "const" in toks and "*" not in \
                toks[:toks.index("const")]:
            toks.remove("const")                    # "T const" is "const T"
            toks.insert(0, "const")
        return " ".join(toks) + array

    @classmethod
    def _params_text(cls, toks):
        params = [cls._type_text(p) for p in split_list(toks)]
        # A const on the parameter itself is no part of the signature.
        return ", ".join(re.sub(r"^const (ucp_\w+_h)$", r"\1", p) for p in params)

    def _function(self, where, d):
        left = d.index("(")
        name = d[left - 1]
        args = d[left + 1:match(d, left, "(", ")")]
        self.functions[name] = "%s (%s)" % (" ".join(d[:left - 1]), self._params_text(args) or "void")
        self.proto_text[name] = " ".join(d)
        self.origin[name] = where

    # --- numbers, by compiling ---

    def compiles(self, text):
        src = "".join("#include <%s>\n" % h for h in HEADERS) + text
        p = subprocess.run(self.cc + ["-std=gnu11", "-w", "-xc", "-fsyntax-only", "-I", self.inc,
                                      "-"], input=src, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
        return p.returncode == 0, p.stderr

    def evaluate(self, exprs):
        """{expression: value}, of expressions that compile."""
        exprs = list(exprs)
        lines = ["#include <stddef.h>", "#include <stdio.h>"]
        lines += ["#include <%s>" % h for h in HEADERS]
        lines += ["int main(void) {"]
        lines += ['printf("%%lld\\n", (long long)(%s));' % e for e in exprs]
        lines += ["return 0; }"]
        with tempfile.TemporaryDirectory() as tmp:
            exe = os.path.join(tmp, "probe")
            p = subprocess.run(self.cc + ["-std=gnu11", "-w", "-xc", "-I", self.inc, "-", "-o",
                                          exe], input="\n".join(lines), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if p.returncode:
                raise Failure("%s: the probe does not compile\n%s" % (self.inc, p.stderr))
            out = subprocess.run([exe], stdout=subprocess.PIPE, text=True, check=True).stdout
        return dict(zip(exprs, (int(x) for x in out.split())))


class Comparison:
    def __init__(self, ref, our):
        self.ref, self.our = ref, our
        self.bad, self.checked = [], 0

    def report(self, text):
        self.bad.append(text)

    def demanded(self, name, where):
        return where not in SUBSET or bool(SUBSET_DEMANDED.match(name))

    def both(self, what, ref, our):
        """Names of ref that ours has too; reports those that are demanded and missing."""
        names = []
        for n in ref:
            if n in our:
                names.append(n)
            elif self.demanded(n, self.ref.origin.get(n) or ref[n]):
                self.report("%s %s: missing" % (what, n))
        return names

    def equal(self, what, ref, our):
        self.checked += 1
        if ref != our:
            self.report("%s: theirs %s, ours %s" % (what, ref, our))

    def enumerators(self):
        names = self.both("enumerator", self.ref.enumerators, self.our.enumerators)
        r, o = self.ref.evaluate(names), self.our.evaluate(names)
        for n in names:
            self.number(n, r[n], o[n])

    def number(self, n, r, o):
        self.checked += 1
        if n in ALLOWED_GREATER:
            ok = o >= r
        elif n in ALLOWED_SUPERSET:
            ok = r & ~o == 0
        else:
            ok = o == r
        if not ok:
            self.report("value of %s: theirs %d, ours %d" % (n, r, o))

    def macros(self):
        ref = {n: v for n, v in self.ref.macros.items() if v[1] or v[2]}   # no include guards
        exprs = []
        for n, (where, like, _) in ref.items():
            if n not in self.our.macros:
                if self.demanded(n, where):
                    self.report("macro %s: missing" % n)
                continue
            if like != self.our.macros[n][1]:
                self.report("macro %s: with arguments in one, without in the other" % n)
                continue
            self.checked += 1
            exprs += CALLS.get(n, []) if like else \
                [n] if self.ref.compiles("enum { probe = (int)(%s) };" % n)[0] else []
        r, o = self.ref.evaluate(exprs), self.our.evaluate(exprs)
        for e in exprs:
            self.number(e, r[e], o[e])

    def types(self):
        names = self.both("type", self.ref.structs, self.our.structs)
        exprs = ["sizeof(%s)" % n for n in names]
        for n in names:
            rf, of = self.ref.structs[n], self.our.structs[n]
            for f in rf:
                if RENAMED.get((n, f)) in of:
                    continue
                if f not in of:
                    self.report("field %s.%s: missing" % (n, f))
                else:
                    exprs += self.field_exprs(n, f)
                    self.equal("type of %s.%s" % (n, f), rf[f], of[f])
        r, o = self.ref.evaluate(exprs), self.our.evaluate(exprs)
        extra = {n: [f for f in self.our.structs[n] if f not in self.ref.structs[n]]
                 for n in names}
        ours_only = [e for n in names for f in extra[n] for e in self.field_exprs(n, f)[:1]]
        o.update(self.our.evaluate(ours_only))
        for n in names:
            size, end = "sizeof(%s)" % n, 0
            for f in self.ref.structs[n]:
                at, width = self.field_exprs(n, f)
                if at in r:
                    self.equal("offset of %s.%s" % (n, f), r[at], o[at])
                    self.equal("size of %s.%s" % (n, f), r[width], o[width])
                    end = max(end, r[at] + r[width])
            grown = [f for f in extra[n] if "." not in f]
            if not grown:
                self.equal("size of %s" % n, r[size], o[size])
            elif o[size] < r[size]:
                self.report("size of %s: theirs %d, ours %d" % (n, r[size], o[size]))
            for f in grown:
                self.checked += 1
                if o[self.field_exprs(n, f)[0]] < end:
                    self.report("field %s.%s is not appended" % (n, f))

    @staticmethod
    def field_exprs(n, f):
        return ["offsetof(%s, %s)" % (n, f), "sizeof(((%s*)0)->%s)" % (n, f)]

    def typedefs(self):
        names = self.both("typedef", self.ref.typedefs, self.our.typedefs)
        # C11 lets a typedef stand again if it is the same type.
        self.again("typedef", {n: self.ref.typedefs[n] for n in names})
        sized = [n for n in names if "(" not in self.ref.typedefs[n] and
                 ("struct" not in self.ref.typedefs[n] or "*" in self.ref.typedefs[n])]
        r = self.ref.evaluate("sizeof(%s)" % n for n in sized)
        o = self.our.evaluate("sizeof(%s)" % n for n in sized)
        for e in r:
            self.equal("size of %s" % e, r[e], o[e])

    def again(self, what, declarations):
        """Their declarations after our headers: the compiler compares the types."""
        self.checked += len(declarations)
        if self.our.compiles(";\n".join(declarations.values()) + ";")[0]:
            return
        for n, text in declarations.items():
            ok, err = self.our.compiles(text + ";")
            if not ok:
                m = re.search(r"error: (.*)", err)
                self.report("%s %s: %s" % (what, n, m.group(1) if m else "does not compile"))

    def functions(self):
        names = self.both("function", self.ref.functions, self.our.functions)
        for n in names:
            self.equal("signature of %s" % n, self.ref.functions[n], self.our.functions[n])
        self.again("function", {n: self.ref.proto_text[n] for n in names})
        for n in self.ref.data - self.our.data:
            if not ALLOWED_MISSING_DATA.match(n):
                self.report("data %s: missing" % n)

    def status(self):
        self.equal("sizeof(ucs_status_t)", 1, self.our.evaluate(["sizeof(ucs_status_t)"])
                   ["sizeof(ucs_status_t)"])

    def run(self):
        for step in (self.status, self.enumerators, self.macros, self.types, self.typedefs,
                     self.functions):
            step()
        return self.bad


def check_map(path, our):
    """A version script exports our ucp_ functions, all of them and no other."""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", " ", open(path).read(), flags=re.S)
    names = set(re.findall(r"\bucp_\w+", text.split("local:")[0]))
    want = {n for n in our.functions if n.startswith("ucp_") and n != "ucp_init"}
    want |= device_functions(our)
    return ["%s: %s is not exported" % (path, n) for n in sorted(want - names)] + \
        ["%s: %s is exported and not declared" % (path, n) for n in sorted(names - want)]


def device_functions(our):
    path = os.path.join(our.inc, "ucp/api/device/ucp_host.h")
    if not os.path.exists(path):
        return set()
    text = re.sub(r"/\*.*?\*/", " ", open(path).read(), flags=re.S)
    return set(re.findall(r"\b(ucp_device_\w+)\s*\(", text))


# (file, what to replace, by what, a piece of the report expected)
BREAKAGES = [
    ("ucp/api/ucp.h", r"UCP_FEATURE_AMO32 = UCS_BIT\(2\)", "UCP_FEATURE_AMO32 = UCS_BIT(9)",
     "value of UCP_FEATURE_AMO32"),
    ("ucp/api/ucp.h", r"UCP_ATOMIC_OP_SWAP,\s+UCP_ATOMIC_OP_CSWAP,",
     "UCP_ATOMIC_OP_CSWAP, UCP_ATOMIC_OP_SWAP,", "value of UCP_ATOMIC_OP_SWAP"),
    ("ucp/api/ucp.h", r"UCP_OP_ATTR_FIELD_MEMH = UCS_BIT\(8\),", "", "UCP_OP_ATTR_FIELD_MEMH: "),
    ("ucs/type/status.h", r"UCS_S_PACKED ucs_status_t", "ucs_status_t", "sizeof(ucs_status_t)"),
    ("ucs/type/status.h", r"UCS_ERR_BUSY = -15", "UCS_ERR_BUSY = -30", "value of UCS_ERR_BUSY"),
    ("ucs/type/status.h", r"-1 < \(uintptr_t\)UCS_ERR_LAST - 1", " < (uintptr_t)UCS_ERR_LAST",
     "UCS_PTR_IS_PTR"),
    ("ucp/api/ucp.h", r"(\tint mt_workers_shared;[^\n]*\n)(\tsize_t estimated_num_eps;[^\n]*\n)",
     r"\2\1", "offset of ucp_params_t.mt_workers_shared"),
    ("ucp/api/ucp.h", r"(\tuint64_t field_mask;[^\n]*\n)(\tuint64_t features;)",
     r"\1\tint inserted;\n\2", "ucp_params_t.inserted is not appended"),
    ("ucp/api/ucp.h", r"unsigned events;", "int events;", "type of ucp_worker_params_t.events"),
    ("ucp/api/ucp.h", r"\tucp_stream_recv_nbx_callback_t recv_stream;", "",
     "cb.recv_stream: missing"),
    ("ucp/api/ucp.h", r"uint8_t reserved\[16\]", "uint8_t reserved[8]",
     "size of ucp_stream_poll_ep_t"),
    ("ucp/api/ucp_compat.h", r"ucs_status_t ucp_worker_flush\(ucp_worker_h worker\);", "",
     "function ucp_worker_flush: missing"),
    ("ucp/api/ucp_compat.h", r"ucp_ep_close_nb\(ucp_ep_h ep, unsigned mode\)",
     "ucp_ep_close_nb(ucp_ep_h ep, uint64_t mode)", "signature of ucp_ep_close_nb"),
    ("ucp/api/ucp.h", r"ucp_tag_probe_nb\(ucp_worker_h worker, ucp_tag_t tag,",
     "ucp_tag_probe_nb(ucp_worker_h worker, uint32_t tag,", "function ucp_tag_probe_nb"),
    ("ucp/api/ucp_def.h", r"typedef uint64_t ucp_tag_t", "typedef uint32_t ucp_tag_t",
     "ucp_tag_t"),
    ("ucp/api/ucp_def.h", r"(ucp_send_nbx_callback_t\)\(void \*request), ucs_status_t status,",
     r"\1, int status,", "typedef ucp_send_nbx_callback_t"),
    ("ucp/api/ucp_def.h", r"UCP_ENTITY_NAME_MAX 32", "UCP_ENTITY_NAME_MAX 64",
     "UCP_ENTITY_NAME_MAX"),
    ("ucp/api/ucp_version.h", r"UCP_VERSION_MAJOR_SHIFT 24", "UCP_VERSION_MAJOR_SHIFT 20",
     "UCP_VERSION"),
    ("ucp/api/ucp.h", r"UCP_DATATYPE_SHIFT\) \| UCP_DATATYPE_CONTIG", "UCP_DATATYPE_SHIFT) | 1",
     "ucp_dt_make_contig"),
]


def self_test(cc, inc, ref):
    failed = 0
    for path, what, by, expected in BREAKAGES:
        with tempfile.TemporaryDirectory() as tmp:
            copy = os.path.join(tmp, "include")
            shutil.copytree(inc, copy)
            target = os.path.join(copy, path)
            with open(target) as f:
                text = f.read()
            broken, n = re.subn(what, by, text, count=1)
            with open(target, "w") as f:
                f.write(broken)
            try:
                found = Comparison(ref, Header(cc, copy)).run() if n else []
            except Failure as e:
                found = [str(e)]
        ok = any(expected in line for line in found)
        failed += not ok
        print("%s: %s" % ("found" if ok else "NOT FOUND", expected if n else
                          "nothing to replace: " + what))
        if not ok:
            for line in found[:5]:
                print("    reported instead: " + line)
    return failed


def main():
    ap = argparse.ArgumentParser(description="compare our UCP headers with installed ones")
    ap.add_argument("cc", help="C compiler, with options")
    ap.add_argument("include", help="our include directory")
    ap.add_argument("--ref", default="/usr/include", help="where the reference headers are")
    ap.add_argument("--map", action="append", default=[], help="version script to be checked")
    ap.add_argument("--self-test", action="store_true", help="see that breakages are found")
    args = ap.parse_args()
    cc = args.cc.split()

    try:
        our = Header(cc, args.include)
        bad = [line for m in args.map for line in check_map(m, our)]
        got = our.evaluate(LATER)
        bad += ["%s: should be %d, is %d" % (e, LATER[e], got[e]) for e in LATER
                if got[e] != LATER[e]]
        if not os.path.exists(os.path.join(args.ref, "ucp/api/ucp.h")):
            for line in bad:
                print(line)
            print("no %s/ucp/api/ucp.h to compare with (Debian: libucx-dev)" % args.ref)
            return 1 if bad else 77
        ref = Header(cc, args.ref)
        if args.self_test:
            return 1 if self_test(cc, args.include, ref) else 0
        comparison = Comparison(ref, our)
        bad += comparison.run()
    except Failure as e:
        print(e)
        return 1
    for line in bad:
        print(line)
    print("%d comparisons (%d functions, %d types, %d enumerators), %d mismatches" % (
        comparison.checked, len(ref.functions), len(ref.structs) + len(ref.typedefs),
        len(ref.enumerators), len(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
