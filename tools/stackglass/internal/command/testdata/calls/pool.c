#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
/* Two threads with a call tree of their own each, and a callback. */
#define F __attribute__((noinline)) static
enum { N = 1500 };
static int keys[N], sorted[2][N];
F unsigned hash(unsigned x){ static unsigned mix[256]; x^=x>>13; mix[x&255]++; return x*2654435761u; }
F int find(const int *a,int n,int k){ int lo=0; while(lo<n){ int m=(lo+n)/2; if(a[m]<k) lo=m+1; else n=m; } return lo; }
F int less(const void *a,const void *b){ return *(const int*)a-*(const int*)b; }
F void copy(int *to,int part){ for(int i=part;i<N;i+=2) to[i/2]=keys[i]; }
F long count(const int *a,int n){ long s=0; for(int i=0;i<n;i++) s+=find(a,n,(int)(hash(i)%30000)); return s; }
F long build(int part){ copy(sorted[part],part); qsort(sorted[part],N/2,sizeof(int),less); return count(sorted[part],N/2); }
F void *run(void *arg){ int part=arg!=0; long *out=malloc(sizeof*out); *out=build(part); if(part) *out+=build(part); return out; }
int main(void){ pthread_t t[2]; for(int i=0;i<N;i++) keys[i]=(int)(hash(i*7919)%30000); pthread_create(&t[0],0,run,0); pthread_create(&t[1],0,run,keys); long s=0; for(int i=0;i<2;i++){ void *p; pthread_join(t[i],&p); s+=*(long*)p; free(p); } printf("%ld\n",s); }
