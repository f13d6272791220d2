"""Pages that show the running service, for a browser on the same machine: one module in `screens` and one template per
screen, and the `rig`, which shows an extension's pages in frames. Sandbox only. Imported at the first page.
"""
