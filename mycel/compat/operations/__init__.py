"""Names that MindSpore generates or keeps private, answered by rule.

A module of MindSpore that this room answers has a table of facts (`facts`): every name with its
parameters. `finding.find` makes the object when a program first asks for the name:

* what is defined elsewhere is the object of that module, public ones those of Mycel itself;
* a class of operations or a function is made (`making`) with MindSpore's parameters and the
  function of Mycel that does the work (`serving`), to which the parameters are bound (`binding`);
* what no function serves can be imported and created, and says when it is called what it is tied
  to and what to use instead (`reasons`).

Nothing is read or made before it is asked for. Each name gives the same object every time.
"""
