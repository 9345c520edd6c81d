# SPDX-License-Identifier: MIT
"""Callbacks for training frameworks. Importing one asks for its framework only when the callback is made."""
