"""The shapes of stored data, and the engines that keep them.

The shapes are in `shapes` and `pools`, the interfaces of a medium and of one namespace on it in `engine`, a dump of a
namespace in `records`. `opening` chooses the engine that a data URL names. `sqlite/backup` and `sqlite/verification`
work on a file as a whole.
"""
