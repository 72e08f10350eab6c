#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts of openapi-schema-validator (PyPI) on objects.

verdicts.py IN OUT   each line of IN is a JSON list of a schema and objects; the
                     line of OUT has for each object a list of [path, rule], or
                     null where the validator cannot judge it
verdicts.py --check  exit code 1 where the validator is not installed

Rules that fncache does not have are left out.
"""
import ast
import json
import re
import sys

FORMATS = {"int32", "int64"}


def verdict(validator, value):
    """The broken rules of `value`; None where Python cannot read a pattern."""
    found = []
    try:
        for error in validator.iter_errors(value):
            path = list(error.absolute_path)
            rule = error.validator
            if rule == "additionalProperties":
                continue
            if rule == "required":
                path.append(ast.literal_eval(error.message[: -len(" is a required property")]))
            if [path, rule] not in found:
                found.append([path, rule])
    except re.error:
        return None
    return found


def main():
    try:
        from jsonschema import FormatChecker
        from openapi_schema_validator import OAS30Validator, oas30_format_checker
    except ImportError:
        return 1
    if sys.argv[1:] == ["--check"]:
        return 0
    source, target = sys.argv[1:]
    formats = FormatChecker(formats=())
    formats.checkers = {name: oas30_format_checker.checkers[name] for name in FORMATS}
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
        for line in lines:
            schema, *values = json.loads(line)
            validator = OAS30Validator(schema, format_checker=formats)
            print(json.dumps([verdict(validator, value) for value in values]), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
