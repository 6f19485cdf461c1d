#!/bin/sh
# What must exist before cargo can run anything: a C compiler and a recent Rust. Does nothing when both are there.
set -eu

# The same number as rust-version in Cargo.toml.
NEEDS=95

say() { printf '» %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install() {
  have apt-get || die "no apt-get here: install these, or what your system calls them, and run again: $*"
  [ "$(id -u)" = 0 ] || have sudo ||
    die "installing needs root and there is no sudo: as root run \`apt-get update && apt-get install $*\`, then this again"
  say "installing $* (about a minute)"
  as_root apt-get update -qq
  # Without a terminal of its own dpkg leaves out its percentages.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
}

# True when rustc and cargo are there and new enough.
recent_rust() {
  have rustc && have cargo || return 1
  minor=$(rustc --version 2>/dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
  [ "${minor:-0}" -ge "$NEEDS" ]
}

install_rust() {
  if [ "${RUSTUP_AUTO_INSTALL:-1}" != 0 ]; then
    say "installing Rust with rustup (about a minute)"
    if have rustup; then
      rustup toolchain install stable --profile minimal --component clippy,rustfmt && rustup default stable && return
    elif installer=$(mktemp) && curl --proto '=https' --tlsv1.2 --connect-timeout 20 --retry 2 -sSf https://sh.rustup.rs -o "$installer"; then
      sh "$installer" -y --quiet --no-modify-path --profile minimal --component clippy --component rustfmt && return
    fi
    say "rustup is out of reach; trying the distribution's Rust"
  fi
  have apt-get && install rustc-web cargo-web rust-web-clippy rustfmt-web || true
}

# `make` often meets a shell without the folder rustup installs into.
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

missing=
have cc || missing="$missing gcc libc6-dev"
recent_rust || have curl || missing="$missing curl ca-certificates"
# Word splitting is wanted: one word a package.
# shellcheck disable=SC2086
[ -z "$missing" ] || install $missing

recent_rust || install_rust
hash -r
recent_rust || die "Rust 1.$NEEDS or newer is needed and could not be installed: see https://rustup.rs, then run again"
