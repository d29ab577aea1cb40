"""Graphs of other libraries, one module each; a library is imported when a function of its module is called."""
