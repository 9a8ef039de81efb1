"""A run on one page: HTML that needs nothing but itself.

``page.py`` lists headings and functions; each function (``about_*.py``) says one thing of a run. ``figures.py`` draws,
``svg.py`` makes pictures part of a page that is light, dark or on paper, ``chosen.py`` says which parameters are shown.
"""
