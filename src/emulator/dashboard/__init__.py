"""Pages that show the running service, for a browser on the same machine.

The `screens`, with one template each, and the `rig`, which shows an extension's pages in frames. Sandbox only. Imported
at the first page.
"""
