// Compiled for the headers that tests share, precompiled.
