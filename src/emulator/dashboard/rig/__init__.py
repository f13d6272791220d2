"""The rig: an extension's pages side by side, each as another viewer."""
