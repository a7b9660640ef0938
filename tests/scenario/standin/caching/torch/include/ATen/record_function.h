/* SPDX-License-Identifier: MIT. Nothing is taken from it. */
