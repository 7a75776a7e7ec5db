#include <stdio.h>
#include <stdlib.h>
/* Three functions call each other in a circle, hundreds of calls deep. */
#define F __attribute__((noinline)) static
static const char *at;
F int peek(void){ return *at; }
F void skip(void){ at++; }
F long expr(void);
F long number(void){ long n=0; while(peek()>='0'&&peek()<='9'){ n=n*10+peek()-'0'; skip(); } return n; }
F long factor(void){ if(peek()=='('){ skip(); long n=expr(); skip(); return n; } return number(); }
F long term(void){ long n=factor(); while(peek()=='*'){ skip(); n=n*factor()%9973; } return n; }
F long expr(void){ long n=term(); while(peek()=='+'){ skip(); n+=term(); } return n; }
F void fill(char *s,int deep,int wide){ char *p=s; for(int i=0;i<wide;i++){ if(i)*p++='+'; for(int k=0;k<deep;k++){ *p++='('; if(k%3==0){ *p++='1'+k%9; *p++='+'; } } *p++='7'; for(int k=0;k<deep;k++){ if(k%5==0){ *p++='*'; *p++='1'+k%7; } *p++=')'; } deep=deep*5/7; } *p=0; }
int main(void){ char *s=malloc(1<<16); fill(s,160,8); at=s; long n=expr(); fill(s,9,40); at=s; n+=expr(); printf("%ld\n",n); free(s); }
