#include <stdio.h>
#include <stdlib.h>
struct n { struct n*l,*r; int k; };
static __attribute__((noinline)) struct n *ins(struct n*t,int k){ if(!t){t=calloc(1,sizeof*t);t->k=k;return t;} if(k<t->k)t->l=ins(t->l,k); else t->r=ins(t->r,k); return t; }
static __attribute__((noinline)) int odd(int n); 
static __attribute__((noinline)) int even(int n){ return n==0?1:odd(n-1)+0*n; }
static __attribute__((noinline)) int odd(int n){ return n==0?0:even(n-1)+0*n; }
static __attribute__((noinline)) long sum(struct n*t){ return t? t->k+sum(t->l)+sum(t->r):0; }
static __attribute__((noinline)) long twice(struct n*t){ return sum(t)+sum(t); }
static int cmp(const void*a,const void*b){ return *(int*)a-*(int*)b; }
int main(){ struct n*t=0; unsigned s=1; int a[2000]; for(int i=0;i<2000;i++){ s=s*1103515245+12345; t=ins(t,a[i]=s>>16&32767);} qsort(a,2000,sizeof(int),cmp); long x=twice(t)+sum(t); for(int i=0;i<100;i++) x+=even(i); printf("%ld %d\n",x,a[5]); }
