"""Storage: the data shapes (`shapes`, `pools`), the interfaces of a medium and of one namespace on it (`engine`), a
dump of a namespace (`records`), and the engines. `opening` chooses the engine that a data URL names.
`sqlite/files` works on a file as a whole.
"""
