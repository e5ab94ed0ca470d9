globalThis.$NAME = 1; /* $NAME */
[$NAME, "$NAME".length];
