# SPDX-License-Identifier: Apache-2.0
import math
import unittest

import samples  # noqa: F401: the path to the modules
from sidebyside.shape import Each, Maybe, Optionally, misfit


class Shapes(unittest.TestCase):
    SHAPE = {"a": [{"b": float}], "c": Each(Maybe(str)), "d": bool}

    def misfit(self, **changes):
        value = {"a": [{"b": 1}], "c": {"x": None, "y": "z"}, "d": True}
        return misfit({**value, **changes}, self.SHAPE)

    def test_what_fits_fits_whatever_else_is_there(self):
        self.assertIsNone(self.misfit())
        self.assertIsNone(self.misfit(more=[1]))
        self.assertIsNone(self.misfit(a=[], c={}))

    def test_what_does_not_fit_is_said_with_where_it_is(self):
        for changes, said in (
            ({"a": [{"b": 1}, {"b": "1"}]}, "a[1].b is not a finite number"),
            ({"a": [{}]}, "a[0].b is missing"),
            ({"a": {}}, "a is not a list"),
            ({"c": []}, "c is not an object"),
            ({"c": {"x": 1}}, "c.x is not a text"),
            ({"d": 1}, "d is not true or false"),
        ):
            self.assertEqual(self.misfit(**changes), said)
        self.assertEqual(misfit([], self.SHAPE), "it is not an object")

    def test_what_is_optional_may_be_missing_but_not_be_another_thing(self):
        shape = {"a": Optionally(float)}
        self.assertIsNone(misfit({}, shape))
        self.assertIsNone(misfit({"a": 1}, shape))
        self.assertEqual(misfit({"a": None}, shape), "a is not a finite number")

    def test_numbers_are_finite_and_no_booleans(self):
        for value in (math.nan, math.inf, True, "1", None):
            self.assertIsNotNone(misfit(value, float), value)
        for value in (True, 1.0, None):
            self.assertIsNotNone(misfit(value, int), value)
        for value in (0, -1, 2.5):
            self.assertIsNone(misfit(value, float), value)
