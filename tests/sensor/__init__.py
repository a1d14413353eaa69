"""Tests of the sensor."""
